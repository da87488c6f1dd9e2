package localstack

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"dropbell/musttest"
)

func TestProgramsAreCompiledAsTheTestIs(t *testing.T) {
	own := []debug.BuildSetting{{Key: "-buildmode", Value: "exe"}, {Key: "-race", Value: "true"}, {Key: "-gcflags", Value: "all=-dwarf=false"},
		{Key: "-ldflags", Value: "-s -w"}, {Key: "GOOS", Value: "linux"}}
	if got := compiledWith(own); !slices.Equal(got, []string{"-race=true", "-gcflags=all=-dwarf=false", "-ldflags=-s -w"}) {
		t.Errorf("flags %q", got)
	}
}

// TestAProgramIsLinkedOnceForATestRun: two tests share one, and each has its own file.
func TestAProgramIsLinkedOnceForATestRun(t *testing.T) {
	folder, mine := t.TempDir(), t.TempDir()
	t.Setenv(TestProgramsVariable, folder)
	const program = "dropbell/adapters/localstack/testdata/program"
	for _, name := range []string{"first", "second", "second", filepath.Join("in", "folders", "third")} {
		musttest.OK(t, BuildProgram(t.Context(), filepath.Join(mine, name), program))
	}
	first, err := os.Stat(filepath.Join(mine, "first"))
	musttest.OK(t, err)
	if second, err := os.Stat(filepath.Join(mine, "second")); err != nil || !os.SameFile(first, second) {
		t.Errorf("built twice (%v)", err)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(mine, "second")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := BuildProgram(t.Context(), filepath.Join(mine, "none"), "dropbell/adapters/localstack/missing"); err == nil {
		t.Error("a package that does not exist was built")
	}
}
