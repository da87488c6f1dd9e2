package operations_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"dropbell/adapters/config"
	"dropbell/musttest"
)

// TestComposePassesEveryVariable: every variable that the programs read can be set
// without editing compose.yaml.
func TestComposePassesEveryVariable(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Environment map[string]string `yaml:"environment"`
		} `yaml:"services"`
	}
	musttest.OK(t, yaml.Unmarshal([]byte(read(t, "../../compose.yaml")), &file))
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
	musttest.OK(t, yaml.Unmarshal([]byte(read(t, "../../compose.yaml")), &file))
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

// TestComposeGivesNoRights: no service has capabilities or gains any, each image names a version, and what
// needs to write nothing outside of its stores cannot. Secrets beside the file reach neither a
// commit nor an image.
func TestComposeGivesNoRights(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Image      string   `yaml:"image"`
			Privileged bool     `yaml:"privileged"`
			User       string   `yaml:"user"`
			ReadOnly   bool     `yaml:"read_only"`
			Drops      []string `yaml:"cap_drop"`
			Adds       []string `yaml:"cap_add"`
			Options    []string `yaml:"security_opt"`
			Ports      []string `yaml:"ports"`
		} `yaml:"services"`
	}
	musttest.OK(t, yaml.Unmarshal([]byte(read(t, "../../compose.yaml")), &file))
	version := regexp.MustCompile(`^[a-z]+:\d+\.\d+(\.\d+)?-[a-z]+$|^dropbell$`)
	for name, s := range file.Services {
		if !slices.Equal(s.Drops, []string{"ALL"}) || len(s.Adds) > 0 || s.Privileged || !slices.Contains(s.Options, "no-new-privileges:true") {
			t.Errorf("%s has more rights than it needs: %+v", name, s)
		}
		if !s.ReadOnly && name != "postgres" { // into which Compose writes its script
			t.Errorf("%s can change its own files", name)
		}
		if !version.MatchString(s.Image) || s.Image != "dropbell" && s.User == "" {
			t.Errorf("%s is of the image %q and runs as %q", name, s.Image, s.User)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s is reachable from everywhere: %s", name, p)
			}
		}
	}
	if !strings.Contains(read(t, "../../Dockerfile"), "\nUSER dropbell\n") {
		t.Error("the image runs as root")
	}
	for _, ignore := range []string{"../../.gitignore", "../../.dockerignore"} {
		lines := strings.Split(read(t, ignore), "\n")
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.TrimPrefix(l, "**/") == ".env" }) {
			t.Errorf("%s does not name .env, where secrets are kept", ignore)
		}
	}
}
