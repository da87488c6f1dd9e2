package stack_test

import (
	"testing"

	"dropbell/adapters/localstack"
	"dropbell/lab/bench/stack"
)

// TestTablesAreFilledAgain: the tables that are emptied between repetitions of a benchmark can
// be emptied, whatever other tables refer to them.
func TestTablesAreFilledAgain(t *testing.T) {
	s, err := stack.On(t.Context(), localstack.Database(t), localstack.RedisServer(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := s.Users(t.Context(), 3); err != nil {
			t.Errorf("users: %v", err)
		}
		if err := s.Empty(t.Context()); err != nil {
			t.Errorf("reservations and batches: %v", err)
		}
	}
}
