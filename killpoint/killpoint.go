// Package killpoint names the instants at which a failure is most harmful: right
// before and right after each commit, answer of a provider, entry of a stream
// and removal from the outbox. Programs built with the tag "killpoints" die,
// fail or lose an answer at one of them when a test requests it; in every other
// build all functions here do nothing, and the compiler removes the calls.
//
// A point is named once, by the operation that it surrounds. docs/proof.md says
// which test walks the list of them.
package killpoint

// A Phase is one side of an operation.
type Phase string

// The phases.
const (
	BeforeIt Phase = "before"
	AfterIt  Phase = "after"
)

// A Failure is one thing that can happen at a point.
type Failure string

// The failures.
const (
	// Kill ends the process with SIGKILL.
	Kill Failure = "kill"
	// Fail returns an error instead of carrying the operation out.
	Fail Failure = "error"
	// Lose returns an error although the operation was executed.
	Lose Failure = "lost"
)

// Failures returns what can happen in the phase.
func Failures(p Phase) []Failure {
	if p == BeforeIt {
		return []Failure{Kill, Fail}
	}
	return []Failure{Kill, Lose}
}

// Armed returns the name of the file that makes the failure happen at the next
// process that passes the point, in the folder that [Variable] names. That
// process renames it to [Hit]. A process that passes a point without a file
// leaves one that is named [Reached].
func Armed(point string, p Phase, f Failure) string {
	return "armed." + point + "." + string(p) + "." + string(f)
}

// Hit is what the file is called once the failure has happened.
func Hit(point string, p Phase, f Failure) string {
	return "hit." + point + "." + string(p) + "." + string(f)
}

// Reached is left by the first process that passes the point.
func Reached(point string) string { return "reached." + point }

// Variable names the folder.
const Variable = "DROPBELL_TEST_KILLPOINTS"
