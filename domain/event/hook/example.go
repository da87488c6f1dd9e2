package hook

import "embed"

//go:embed testdata/*.json
var examples embed.FS

// Example returns an event of the type as it is sent, indented; "" for a type that
// does not exist.
func Example(t Type) string {
	raw, err := examples.ReadFile("testdata/" + string(t) + ".json")
	if err != nil {
		return ""
	}
	return string(raw)
}
