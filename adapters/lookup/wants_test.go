package lookup_test

import (
	"context"
	"errors"
	"testing"

	"dropbell/adapters/lookup"
	"dropbell/domain/event/hook"
)

func TestWants(t *testing.T) {
	for name, c := range map[string]struct {
		types []hook.Type
		all   bool
		err   error
		want  bool
	}{
		"nobody":         {},
		"another type":   {types: []hook.Type{hook.DropOpened}},
		"the type":       {types: []hook.Type{hook.ReservationMade}, want: true},
		"all":            {all: true, want: true},
		"cannot be told": {err: errors.New("away"), want: true},
	} {
		loads := 0
		w := lookup.Wants{Load: func(context.Context) ([]hook.Type, bool, error) { loads++; return c.types, c.all, c.err }}
		for range 3 {
			if got := w.Any(t.Context(), hook.ReservationMade, hook.ReservationCancelled); got != c.want {
				t.Errorf("%s: %v", name, got)
			}
		}
		if none := len(c.types) == 0 && !c.all && c.err == nil; w.None(t.Context()) != none {
			t.Errorf("%s: none is not %v", name, none)
		}
		if loads != 1 {
			t.Errorf("%s: loaded %d times within a second", name, loads)
		}
	}
}
