// Reads a message in pieces with Toolwire, from Go: go run examples/sidecar.go
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
)

type object = map[string]any

// A sidecar answers in the order of the requests, one line of JSON each.
type sidecar struct {
	requests io.WriteCloser
	answers  *bufio.Reader
}

func (s *sidecar) ask(request object, result any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err = s.requests.Write(append(line, '\n')); err != nil {
		return err
	}
	if line, err = s.answers.ReadBytes('\n'); err != nil {
		return err
	}
	var answer struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err = json.Unmarshal(line, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return errors.New(answer.Error.Message)
	}
	return json.Unmarshal(answer.Result, result)
}

func run(program string) error {
	command := exec.Command(program, "serve", "--sidecar")
	command.Stderr = os.Stderr
	requests, err := command.StdinPipe()
	if err != nil {
		return err
	}
	answers, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err = command.Start(); err != nil {
		return err
	}
	toolwire := sidecar{requests, bufio.NewReader(answers)}

	city := object{"type": "object", "properties": object{"city": object{"type": "string"}}}
	tools := []object{{"name": "get_weather", "parameters": city}}
	pieces := []string{"Let me look. <tool_", `call>{"name": "get_weather", "argu`, `ments": {"city": "Paris"}}</tool_call>`}

	if err = toolwire.ask(object{"do": "open", "stream": "1", "format": "hermes", "tools": tools}, &object{}); err != nil {
		return err
	}
	for _, text := range pieces {
		var fed struct{ Deltas []json.RawMessage }
		if err = toolwire.ask(object{"do": "feed", "stream": "1", "text": text}, &fed); err != nil {
			return err
		}
		for _, delta := range fed.Deltas {
			fmt.Println(string(delta))
		}
	}
	var finished struct {
		Events []struct{ Event, Reason string }
	}
	if err = toolwire.ask(object{"do": "finish", "stream": "1"}, &finished); err != nil {
		return err
	}
	last := finished.Events[len(finished.Events)-1]
	fmt.Println(last.Event, last.Reason)
	requests.Close()
	return command.Wait()
}

func main() {
	program := os.Getenv("TOOLWIRE")
	if program == "" {
		program = "toolwire"
	}
	if err := run(program); err != nil {
		log.Fatal(err)
	}
}
