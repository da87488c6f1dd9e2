package laws

import (
	"os"
	"strings"
	"testing"
)

// TestModulesAgree: the laboratory is built with the versions of libraries that the product
// is built with, so that no library is compiled twice.
func TestModulesAgree(t *testing.T) {
	product, laboratory := requirements(t, "go.mod"), requirements(t, "lab/go.mod")
	shared := 0
	for name, version := range laboratory {
		if want, ok := product[name]; ok && name != "dropbell/sdk/go" {
			if shared++; version != want {
				t.Errorf("lab/go.mod requires %s %s and go.mod %s\n\trun go -C lab get %s@%s", name, version, want, name, want)
			}
		}
	}
	if shared < 20 {
		t.Errorf("the modules share %d libraries only", shared)
	}
}

// requirements returns the versions that a module file requires, by module.
func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(strings.TrimPrefix(line, "require ")); len(f) >= 2 && strings.HasPrefix(f[1], "v") {
			versions[f[0]] = f[1]
		}
	}
	return versions
}
