package localstack

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dropbell/musttest"
)

// TestInstallWithoutAHeadlessShell: if apt knows no package with a headless browser, all other
// packages are installed in one run. Tests get the complete browser without another run of apt.
func TestInstallWithoutAHeadlessShell(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"env", "sh", "cat", "true", "chmod"} {
		path, err := exec.LookPath(name)
		musttest.OK(t, err)
		musttest.OK(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	calls := filepath.Join(dir, "calls")
	for name, script := range map[string]string{
		"dpkg": "exit 0",
		"sudo": `shift; exec "$@"`,
		"apt-get": `echo "$@" >> ` + calls + `
case "$*" in
*headless*) echo "E: Unable to locate package" >&2; exit 100 ;;
*install*chromium*) echo > ` + dir + `/chromium; chmod +x ` + dir + `/chromium ;;
esac`,
	} {
		musttest.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	t.Setenv("PATH", dir)
	if p, err := lookChromium(); err == nil {
		// It is found wherever PATH points, as on macOS, so nothing would be installed.
		t.Skip("a browser outside of PATH: ", p.path)
	}
	var said strings.Builder
	Install(t.Context(), &said, headlessPackage, chromiumPackage)
	if p, err := lookChromium(); err != nil || p.path != filepath.Join(dir, "chromium") {
		t.Errorf("chromium is %q, %v", p.path, err)
	}
	if !strings.Contains(said.String(), "without "+headlessPackage) {
		t.Errorf("said %s", said.String())
	}
	before, err := os.ReadFile(calls)
	if err != nil || strings.Count(string(before), "\n") != 2 {
		t.Errorf("apt was called with %s, %v", before, err)
	}
	path, err := FindHeadless(t.Context(), io.Discard)
	if after, _ := os.ReadFile(calls); err != nil || path != filepath.Join(dir, "chromium") || string(after) != string(before) {
		t.Errorf("tests get %s, %v, by %s", path, err, after)
	}
	shell := filepath.Join(dir, "chromium-headless-shell")
	musttest.OK(t, os.Rename(filepath.Join(dir, "chromium"), shell))
	if path, err := FindHeadless(t.Context(), io.Discard); err != nil || path != shell {
		t.Errorf("tests get %s, %v", path, err)
	}
}
