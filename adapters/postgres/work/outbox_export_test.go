package work

// ExplainRelay is how a relay finds and deletes its events; it takes a limit.
func ExplainRelay() string { return `explain ` + relaySQL }
