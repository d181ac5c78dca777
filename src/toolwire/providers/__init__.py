"""Provider APIs: requests, responses and streams, encoded and decoded."""
