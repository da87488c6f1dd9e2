package api

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// userLineField and quietField know the names that [UserLine] and
// [QuietHours] have, letter for letter.
func userLineField(name string) bool {
	switch name {
	case "id", "name", "email", "phone", "locale", "timezone", "opt_outs", "quiet_hours", "attributes":
		return true
	}
	return false
}

func quietField(name string) bool { return name == "from" || name == "to" }

// namedOnce checks a line that encoding/json could read, which takes names in
// other letters and lets the last of several equal ones win.
func namedOnce(text []byte) error {
	return names(jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true)), userLineField)
}

// names reads one value. If it is an object, its names must be known and
// stand there once; those within its values only the latter.
func names(d *jsontext.Decoder, known func(string) bool) error {
	if d.PeekKind() != '{' {
		return nameError(d.SkipValue())
	}
	if _, err := d.ReadToken(); err != nil {
		return nameError(err)
	}
	for {
		name, err := d.ReadToken()
		if err != nil {
			return nameError(err)
		}
		if name.Kind() == '}' {
			return nil
		}
		field := name.String()
		switch {
		case !known(field):
			return fmt.Errorf("unknown field %q", field)
		case field == "quiet_hours":
			err = names(d, quietField)
		default:
			err = nameError(d.SkipValue())
		}
		if err != nil {
			return err
		}
	}
}

func nameError(err error) error {
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case err == nil:
		return nil
	case ok && wrong.Err == jsontext.ErrDuplicateName:
		return fmt.Errorf("the field %q is given more than once", wrong.JSONPointer.LastToken())
	}
	return errors.New("is not valid JSON")
}
