package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type category string

type spec struct {
	Name  string
	Kinds []category
	On    bool
}

// TestOverwrite sets the fields that a patch has, and converts named texts.
func TestOverwrite(t *testing.T) {
	type patch struct {
		Name  *string
		Kinds *[]string
		On    *bool
	}
	got := spec{"n", nil, true}
	Overwrite(&got, patch{Kinds: new([]string{"a"}), On: new(false)})
	if diff := cmp.Diff(spec{"n", []category{"a"}, false}, got); diff != "" {
		t.Error(diff)
	}
	Overwrite(&got, patch{Kinds: new([]string)})
	if diff := cmp.Diff(spec{"n", []category{}, false}, got); diff != "" {
		t.Error(diff)
	}
}

// TestForgottenFields: a patch without a field of the spec panics.
func TestForgottenFields(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Overwrite(&spec{}, struct{ Name, On *string }{})
}
