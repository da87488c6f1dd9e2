package pipeline

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/field"
)

type kind string

type drop struct {
	Shop  int64      `field:"shop"`
	Kind  kind       `field:"kind"`
	Until *time.Time `field:"until"`
}

type dropWish struct {
	Shop  string     `json:"shop"`
	Kind  string     `json:"kind,omitempty"`
	Until *time.Time `json:"until,omitempty"`
}

type dropMore struct {
	Reason string `json:"reason,omitempty"`
}

func TestChangeKeepsWhatIsAbsent(t *testing.T) {
	at := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	copies := Copies[drop, dropWish](field.Of[drop]())
	for body, want := range map[string]drop{
		`{}`:                                    {7, "a", &at},
		`{"kind":"b"}`:                          {7, "b", &at},
		`{"shop":"8","until":null}`:             {8, "a", nil},
		`{"until":"2027-01-01T13:00:00+01:00"}`: {7, "a", &at},
	} {
		var c Change[dropWish, dropMore]
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
		var w dropWish
		copies.To(&w, drop{7, "a", &at})
		var got drop
		if err := copies.From(&got, c.On(w)); err != nil {
			t.Error(body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(body, diff)
		}
	}
	var c Change[dropWish, dropMore]
	if err := json.Unmarshal([]byte(`{"reason":"why","shop":null}`), &c); err != nil || c.More.Reason != "why" {
		t.Errorf("%+v, %v", c, err)
	}
	var d drop
	if err := copies.From(&d, c.On(dropWish{Shop: "7"})); err == nil {
		t.Error("no shop is a shop")
	}
}

// TestForgottenFieldPanics: a body without a field of the domain is a mistake of the program.
func TestForgottenFieldPanics(t *testing.T) {
	for name, make := range map[string]func(){
		"absent": func() { Copies[drop, dropMore](field.Of[drop]()) },
		"another type": func() {
			Copies[drop, struct {
				Shop  string `json:"shop"`
				Kind  int    `json:"kind"`
				Until string `json:"until"`
			}](field.Of[drop]())
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			make()
		}()
	}
}
