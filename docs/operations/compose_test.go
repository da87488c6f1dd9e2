package operations_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"dropbell/adapters/config"
)

// TestComposePassesEveryVariable: every variable that the programs read can be set
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
	for _, service := range []string{"web", "worker", "migrate"} {
		for _, v := range config.Variables() {
			if _, ok := file.Services[service].Environment[v.Name]; !ok {
				t.Errorf("%s does not reach the service %s", v.Name, service)
			}
		}
	}
}

// TestComposeUsesNoSuperuser: the role of DATABASE_URL is one that the script
// makes without rights beyond its own database.
func TestComposeUsesNoSuperuser(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Environment map[string]string `yaml:"environment"`
		} `yaml:"services"`
		Configs map[string]struct {
			Content string `yaml:"content"`
		} `yaml:"configs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../../compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	superuser := file.Services["postgres"].Environment["POSTGRES_USER"]
	for _, service := range []string{"web", "worker", "migrate"} {
		if url := file.Services[service].Environment["DATABASE_URL"]; superuser == "" || !strings.HasPrefix(url, "postgres://dropbell:") || superuser == "dropbell" {
			t.Errorf("%s connects as the superuser %q: %s", service, superuser, url)
		}
	}
	if script := file.Configs["role"].Content; !strings.Contains(script, "create role dropbell login password :'password' nosuperuser") {
		t.Errorf("the role is made by %s", script)
	}
}
