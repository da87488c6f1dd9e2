package child

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func startShell(t *testing.T, script string) *Process {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	p, err := Start(exec.Command("sh", "-c", script, ready), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(context.Background(), syscall.SIGKILL, time.Second) })
	deadline := time.Now().Add(10 * time.Second)
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if _, err := os.Stat(ready); err == nil {
			return p
		}
		if time.Now().After(deadline) {
			t.Fatal("the shell does not begin")
		}
	}
}

func TestStopAsksFirst(t *testing.T) {
	p := startShell(t, `trap 'exit 3' TERM; : >"$0"; while :; do sleep 0.05; done`)
	if err := p.Stop(t.Context(), syscall.SIGTERM, 10*time.Second); err != nil {
		t.Error(err)
	}
	if err := p.Err(); err == nil || err.Error() != "exit status 3" {
		t.Errorf("it ended with %v instead of its own exit status", err)
	}
	if err := p.Stop(t.Context(), syscall.SIGTERM, time.Second); err != nil {
		t.Errorf("stopping again: %v", err)
	}
}

func TestStopKillsWhoDoesNotListen(t *testing.T) {
	p := startShell(t, `trap '' TERM; : >"$0"; while :; do sleep 0.05; done`)
	err := p.Stop(t.Context(), syscall.SIGTERM, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("error %v", err)
	}
	if Alive(p.PID()) {
		t.Error("it is still there")
	}
}

func TestTree(t *testing.T) {
	p := startShell(t, `sleep 60 & : >"$0"; wait`)
	children := Children(p.PID())
	if len(children) != 1 || !strings.Contains(CommandLine(children[0]), "sleep 60") {
		t.Fatalf("children %v", children)
	}
	if Parent(children[0]) != p.PID() || Parent(p.PID()) != os.Getpid() {
		t.Errorf("parents %d and %d", Parent(children[0]), Parent(p.PID()))
	}
	if err := End(t.Context(), children[0], syscall.SIGTERM, 5*time.Second); err != nil {
		t.Error(err)
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
	if Alive(p.PID()) || CommandLine(p.PID()) != "" {
		t.Error("an ended process counts as running")
	}
}

func TestStartReportsAMissingProgram(t *testing.T) {
	if _, err := Start(exec.Command("/no/such/program"), syscall.SIGKILL); err == nil {
		t.Error("no error")
	}
}

func TestDismissedRemovalRemovesNothing(t *testing.T) {
	dir := t.TempDir()
	dismiss := RemoveOrphaned(dir)
	dismiss()
	dismiss()
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
