package operations_test

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"dropbell/adapters/config"
)

// TestComposePassesEveryVariable: what the programs read can be set without
// editing compose.yaml.
func TestComposePassesEveryVariable(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Environment map[string]string `yaml:"environment"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../../compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"web", "worker", "migrate"} {
		for _, v := range config.Variables() {
			if _, ok := file.Services[service].Environment[v.Name]; !ok {
				t.Errorf("%s does not reach the service %s", v.Name, service)
			}
		}
	}
}
