package sheet

import "dropbell/domain/fault"

// told is a fault of a file or a row that has a text in the catalogues.
type told struct {
	*fault.Fault
	rule *fault.Fields
}

// Unwrap returns the fault and the rule that was broken.
func (t told) Unwrap() []error { return []error{t.Fault, t.rule} }

// because returns f with a text for this case, and also as a rule that has a text in every
// language.
func because(f *fault.Fault, key, format string, args ...any) error {
	t := told{f.Because(format, args...), &fault.Fields{}}
	t.rule.Add("", key, "%s", t.Text)
	return t
}
