package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"dropbell/musttest"
)

// TestEveryModuleIsCovered: the text names each module that the Go command reports as linked in,
// on any platform, and each third-party asset, with its licence.
func TestEveryModuleIsCovered(t *testing.T) {
	t.Chdir("../../..")
	var text bytes.Buffer
	musttest.OK(t, write(&text))
	modules := 0
	for _, platform := range platforms {
		system, machine, _ := strings.Cut(platform, "/")
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}"}, programs...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine)
		out, err := cmd.Output()
		musttest.OK(t, err)
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "dropbell") {
				continue
			}
			modules++
			if !strings.Contains(text.String(), "\n"+line+"\n"+strings.Repeat("-", 80)) {
				t.Errorf("%s: the licence of %s is missing", platform, line)
			}
		}
	}
	if modules < 100 {
		t.Errorf("only %d packages of modules were looked at", modules)
	}
	for _, asset := range []string{"htmx-", "uPlot-", "tabler-icons-", "Go, its standard library", "github.com/jackc/pgx/v5"} {
		if !strings.Contains(text.String(), asset) {
			t.Errorf("%s is missing", asset)
		}
	}
	if strings.Count(text.String(), "Apache License") < 5 || strings.Count(text.String(), "Permission is hereby granted") < 5 {
		t.Error("the licences themselves are missing")
	}
}

// TestALibraryWithoutALicence is noticed.
func TestALibraryWithoutALicence(t *testing.T) {
	if l, err := libraryAt("x", t.TempDir()); err != nil || len(l.files) != 0 {
		t.Errorf("%+v %v", l, err)
	}
	t.Chdir(t.TempDir())
	if err := write(io.Discard); err == nil {
		t.Error("nothing is missing where there is nothing")
	}
	if _, err := libraryAt("x", "nowhere"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestReleasesContainTheLicences: archives and image have the text that this program writes.
func TestReleasesContainTheLicences(t *testing.T) {
	t.Chdir("../../..")
	read := func(name string) string {
		raw, err := os.ReadFile(name)
		musttest.OK(t, err)
		return string(raw)
	}
	var release struct {
		Before struct {
			Hooks []string `yaml:"hooks"`
		} `yaml:"before"`
		Archives []struct {
			Files []any `yaml:"files"`
		} `yaml:"archives"`
		Images []struct {
			Extra []string `yaml:"extra_files"`
		} `yaml:"dockers_v2"`
	}
	musttest.OK(t, yaml.Unmarshal([]byte(read(".goreleaser.yaml")), &release))
	const file = ".local/THIRD_PARTY.txt"
	said, _ := json.Marshal(release)
	if len(release.Before.Hooks) == 0 || release.Before.Hooks[0] != "go -C lab run ./tools/licences "+file || len(release.Archives) == 0 || len(release.Images) == 0 ||
		strings.Count(string(said), file) != 3 {
		t.Errorf("%s", said)
	}
	for _, line := range []string{"RUN go -C lab run ./tools/licences /out/THIRD_PARTY.txt", "COPY .local/THIRD_PARTY.txt /out/", "COPY --from=programs /out/THIRD_PARTY.txt /usr/share/doc/dropbell/"} {
		if !strings.Contains(read("Dockerfile"), line+"\n") {
			t.Errorf("the Dockerfile has no line %q", line)
		}
	}
}
