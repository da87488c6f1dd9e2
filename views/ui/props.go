package ui

import (
	"github.com/a-h/templ"

	"dropbell/domain/template"
)

func buttonKind(kind string) string {
	if kind == "" {
		return "is-plain"
	}
	return "is-" + kind
}

// StateTone is the colour of a template's state.
func StateTone(s template.State) Tone { return stateTone(s) }

func stateTone(s template.State) Tone {
	switch s {
	case template.Scheduled, template.Sealed:
		return Info
	case template.Open, template.EntriesOpen, template.Drawn:
		return Good
	case template.SoldOut:
		return Late
	case template.Paused:
		return Warn
	case template.Cancelled:
		return Bad
	}
	return Neutral
}

func fieldType(p FieldProps) string {
	if p.Type == "" {
		return "text"
	}
	return p.Type
}

// fieldAttrs are the common attributes of input and textarea. The server checks the rules, because
// it can explain them; the browser's own error bubbles would hide the explanation.
func fieldAttrs(p FieldProps) templ.Attributes {
	a := templ.Attributes{}
	set := func(name, value string) {
		if value != "" {
			a[name] = value
		}
	}
	set("aria-describedby", p.describedBy())
	set("autocomplete", p.Autocomplete)
	set("inputmode", p.InputMode)
	set("step", p.Step)
	set("maxlength", p.MaxLength)
	if p.Error != "" {
		a["aria-invalid"] = "true"
	}
	if p.Fixed {
		a["readonly"] = true
	}
	if p.Focus {
		a["autofocus"] = true
	}
	if p.Required {
		a["aria-required"] = "true"
	}
	return a
}
