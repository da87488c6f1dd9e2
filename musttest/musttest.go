// Package musttest ends a test whose preparation fails.
package musttest

// A T is a test, a benchmark or a check of random inputs.
type T interface {
	Helper()
	Fatal(args ...any)
}

// OK ends the test if err is not nil.
func OK(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
