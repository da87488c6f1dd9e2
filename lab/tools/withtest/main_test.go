package main

import (
	"os"
	"strings"
	"testing"

	"dropbell/adapters/localstack"
)

func TestCommandSeesTheServerAndItsStatusIsReturned(t *testing.T) {
	t.Setenv(localstack.TestServerVariable, "") // as if it was not set
	seen := t.TempDir() + "/seen"
	status, err := run([]string{"sh", "-c", `printf %s "$` + localstack.TestServerVariable + `" >"$0"; exit 7`, seen})
	if status != 7 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	if raw, err := os.ReadFile(seen); !strings.HasPrefix(string(raw), "postgres://dropbell@127.0.0.1:") {
		t.Errorf("the command saw %q (%v)", raw, err)
	}
}

func TestMissingCommandFails(t *testing.T) {
	t.Setenv(localstack.TestServerVariable, "postgres://unused")
	if status, err := run([]string{"/no/such/command"}); status == 0 || err == nil {
		t.Errorf("status %d, %v", status, err)
	}
}
