package laws

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dropbell/musttest"
)

// TestChangelogFragments: each fragment names its group and is one entry of a list,
// so that .ci/changelog can gather the fragments.
func TestChangelogFragments(t *testing.T) {
	files, err := filepath.Glob("changelog.d/*")
	musttest.OK(t, err)
	name := regexp.MustCompile(`^[a-z0-9-]+\.(added|changed|fixed|security|upgrading)\.md$`)
	for _, file := range files {
		if path.Base(filepath.ToSlash(file)) == "README.md" {
			continue
		}
		text, err := os.ReadFile(file)
		musttest.OK(t, err)
		if !name.MatchString(filepath.Base(file)) || !strings.HasPrefix(string(text), "- ") || !strings.HasSuffix(string(text), ".\n") {
			t.Errorf("%s is no fragment as changelog.d/README.md describes", file)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if len([]rune(line)) > 140 {
				t.Errorf("%s:%d is longer than 140 characters", file, i+1)
			}
		}
	}
}

// TestReleaseScripts runs a release in a copy: fragments become a section, the
// section becomes the notes, and the tag must be the version of the section.
func TestReleaseScripts(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		musttest.OK(t, os.MkdirAll(filepath.Dir(file), 0o700))
		musttest.OK(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for _, script := range []string{".ci/changelog", ".ci/release-check", ".ci/release-notes"} {
		text, err := os.ReadFile(script)
		musttest.OK(t, err)
		write(script, string(text))
	}
	run := func(ok bool, script string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "sh", append([]string{filepath.Join(dir, script)}, args...)...).CombinedOutput()
		if (err == nil) != ok {
			t.Errorf("%s %v: %v\n%s", script, args, err, out)
		}
		return string(out)
	}
	write("CHANGELOG.md", "# Changelog\n\nAll of them.\n\n## 1.2.0 (2027-01-02)\n\nolder\n")
	write("changelog.d/README.md", "stays\n")
	write("changelog.d/one.fixed.md", "- One.\n")
	write("changelog.d/two.added.md", "- Two.\n")
	write("changelog.d/three.added.md", "- Three.\n")
	write("VERSION", "1.3.0-dev\n")
	run(false, ".ci/release-check", "v1.3.0-dev")
	write("VERSION", "1.3.0\n")
	run(false, ".ci/release-check", "v1.3.0") // no section yet
	run(true, ".ci/changelog")
	const want = "\n### Added\n\n- Three.\n- Two.\n\n### Fixed\n\n- One.\n\n"
	if got := run(true, ".ci/release-notes"); got != want {
		t.Errorf("the notes are %q, want %q", got, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	musttest.OK(t, err)
	if !regexp.MustCompile(`(?s)^# Changelog\n\nAll of them\.\n\n## 1\.3\.0 \(\d{4}-\d\d-\d\d\)\n` + regexp.QuoteMeta(want) +
		`## 1\.2\.0 \(2027-01-02\)\n\nolder\n$`).Match(text) {
		t.Errorf("the changelog is\n%s", text)
	}
	left, err := filepath.Glob(filepath.Join(dir, "changelog.d", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "README.md" {
		t.Errorf("left are %v (%v)", left, err)
	}
	run(true, ".ci/release-check", "v1.3.0")
	run(false, ".ci/release-check", "v1.3.1")
	run(false, ".ci/release-check")
	run(false, ".ci/changelog") // twice
	write("CHANGELOG.md", "# Changelog\n\n## 1.3.0 (not released yet)\n\nfirst\n")
	run(false, ".ci/release-check", "v1.3.0")
}
