package localstack

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dropbell/musttest"
)

// TestNPMPackagesAreInstalledOnce: a second call and a parallel call use the packages that the
// first call has installed.
func TestNPMPackagesAreInstalledOnce(t *testing.T) {
	bin, said := t.TempDir(), &strings.Builder{}
	cache := t.TempDir()
	npm := "#!/bin/sh\necho run >>" + filepath.Join(cache, "runs") + "\nmkdir node_modules\n"
	for name, text := range map[string]string{"npm": npm, "node": "#!/bin/sh\n"} {
		musttest.OK(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	dir := t.TempDir()
	for _, name := range npmFiles {
		musttest.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(t.Name()), 0o644))
	}
	install := func() (string, error) {
		return npmPackagesIn(t.Context(), said, machine{npm: true, platform: "test"}, dir, cache)
	}
	answers := make(chan error, 4)
	for range cap(answers) {
		go func() {
			modules, err := install()
			if err == nil {
				_, err = os.Stat(modules)
			}
			answers <- err
		}()
	}
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	runs, err := os.ReadFile(filepath.Join(cache, "runs"))
	if err != nil || strings.Count(string(runs), "run") != 1 {
		t.Errorf("npm ran as %q, %v", runs, err)
	}
	if _, err := npmPackagesIn(t.Context(), said, machine{}, dir, cache); !errors.Is(err, errNoNPM) {
		t.Errorf("without npm: %v", err)
	}
}
