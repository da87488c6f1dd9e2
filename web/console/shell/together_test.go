package shell_test

import (
	"errors"
	"testing"

	"dropbell/web/console/shell"
)

// TestTogether: the functions run at the same time, the first error in their order is returned,
// and a panic is raised again in the caller.
func TestTogether(t *testing.T) {
	met := make(chan struct{})
	first, second := errors.New("first"), errors.New("second")
	err := shell.Together(
		func() error { met <- struct{}{}; return nil },
		func() error { <-met; return first },
		func() error { return second },
	)
	if !errors.Is(err, first) {
		t.Errorf("%v, want %v", err, first)
	}
	if err := shell.Together(); err != nil {
		t.Errorf("without functions: %v", err)
	}
	defer func() {
		if p := recover(); p != "broken" {
			t.Errorf("recovered %v", p)
		}
	}()
	_ = shell.Together(func() error { panic("broken") }, func() error { return first })
	t.Error("the panic was lost")
}
