package localstack

import (
	"runtime/debug"
	"slices"
	"testing"
)

func TestProgramsAreCompiledAsTheTestIs(t *testing.T) {
	own := []debug.BuildSetting{{Key: "-buildmode", Value: "exe"}, {Key: "-race", Value: "true"}, {Key: "-gcflags", Value: "all=-dwarf=false"},
		{Key: "-ldflags", Value: "-s -w"}, {Key: "GOOS", Value: "linux"}}
	if got := compiledWith(own); !slices.Equal(got, []string{"-race=true", "-gcflags=all=-dwarf=false"}) {
		t.Errorf("flags %q", got)
	}
	build := GoBuild(t.Context(), "bin/web", "dropbell/web", "-tags", "killpoints").Args
	if !slices.Equal(build[:4], []string{"go", "build", "-o", "bin/web"}) || !slices.Equal(build[len(build)-3:], []string{"-tags", "killpoints", "dropbell/web"}) {
		t.Errorf("command %q", build)
	}
}
