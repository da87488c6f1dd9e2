package parts

import "testing"

// A step that can never succeed is shown as impossible, not as a step whose object has changed.
func TestFailureOfInvalidInput(t *testing.T) {
	for status, want := range map[int]string{409: "failure.conflict", 422: "failure.invalid", 418: "failure.bug"} {
		if got := (Failure{Status: status}).key(); got != want {
			t.Errorf("%d is %s", status, got)
		}
	}
}
