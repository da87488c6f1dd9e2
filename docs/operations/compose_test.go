package operations_test

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestComposePassesEveryVariable: what the handbook says can be set can be set
// without editing compose.yaml.
func TestComposePassesEveryVariable(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Environment map[string]string `yaml:"environment"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../../compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(read(t, "../operations.md"), "\n## Configuration\n")
	text, _, _ = strings.Cut(text, "\n## ")
	listed := 0
	for line := range strings.Lines(text) {
		cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if !ok {
			continue
		}
		for _, m := range regexp.MustCompile("`([A-Z][A-Z_]+)`").FindAllStringSubmatch(cell, -1) {
			listed++
			if m[1] == "GOGC" || m[1] == "GOMEMLIMIT" { // Go's own, for who knows why
				continue
			}
			for _, service := range []string{"web", "worker", "migrate"} {
				if _, ok := file.Services[service].Environment[m[1]]; !ok {
					t.Errorf("%s does not reach the service %s", m[1], service)
				}
			}
		}
	}
	if listed < 20 {
		t.Fatalf("only %d variables found in the handbook", listed)
	}
}
