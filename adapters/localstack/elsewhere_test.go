package localstack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAbandonedFoldersAreRemoved: a folder whose owner is gone is removed; all other folders
// stay.
func TestAbandonedFoldersAreRemoved(t *testing.T) {
	root, checkouts := t.TempDir(), t.TempDir()
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	// place makes the folder for a checkout's data, with some in it.
	place := func(checkout string) (base, dir string) {
		t.Helper()
		base = filepath.Join(checkouts, checkout, ".local")
		must(t, os.MkdirAll(base, 0o755))
		dir, err := folderOf(root, base)
		must(t, err)
		must(t, os.MkdirAll(filepath.Join(dir, "postgres", "base"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "postgres", "PG_VERSION"), []byte("15\n"), 0o600))
		used(t, dir, time.Now().Add(-abandonedAfter))
		return base, dir
	}
	lost := func(base string) { must(t, os.RemoveAll(filepath.Dir(base))) }
	_, kept := place("kept")
	gone, removed := place("gone")
	lost(gone)
	serving, running := place("running")
	lost(serving)
	data := filepath.Join(running, "postgres")
	server := exec.Command("sh", "-c", "read -r _; exit 0", "postgres", "-D", data)
	wait, err := server.StdinPipe()
	must(t, err)
	must(t, server.Start())
	must(t, os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(strconv.Itoa(server.Process.Pid)+"\n"+data+"\n"), 0o600))
	older, without := place("without a note")
	lost(older)
	must(t, os.Remove(filepath.Join(without, ownerNote)))
	moved, copied := place("copied")
	lost(moved)
	away, young := place("on a disk that is away")
	lost(away)
	used(t, young, time.Now().Add(time.Minute-abandonedAfter))
	foreign := filepath.Join(root, "somebody-elses")
	must(t, os.Rename(copied, foreign))

	removeAbandoned(root, say)
	for _, dir := range []string{kept, running, without, foreign, young} {
		if _, err := os.Stat(filepath.Join(dir, "postgres", "PG_VERSION")); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(removed); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", removed, err)
	}
	if len(said) != 1 || !strings.Contains(said[0], removed) || !strings.Contains(said[0], gone) {
		t.Errorf("said %q", said)
	}

	must(t, wait.Close())
	must(t, server.Wait())
	removeAbandoned(root, say)
	if _, err := os.Stat(running); !os.IsNotExist(err) {
		t.Errorf("its server has ended, and %s is still there (%v)", running, err)
	}
	removeAbandoned(filepath.Join(root, "never made"), say)
}

// used makes a folder look as if it was last started then.
func used(t *testing.T, dir string, at time.Time) {
	t.Helper()
	must(t, os.Chtimes(filepath.Join(dir, ownerNote), at, at))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
