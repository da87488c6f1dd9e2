package child

import (
	"os"
	"os/exec"
	"syscall"
)

// RemoveOrphaned removes dir when this program dies before it calls dismiss.
func RemoveOrphaned(dir string) (dismiss func()) {
	// The programs that write to dir die at the same moment. Files that they still write during
	// a round are removed in the next round.
	return guard(`for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1"; sleep 0.2; done`, dir)
}

// guard starts a shell that runs script after this program has ended. The shell notices the end
// by a pipe that only this program holds open.
func guard(script string, args ...string) (dismiss func()) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	cmd := exec.Command("sh", append([]string{"-c", `read -r _; ` + script, "guard"}, args...)...)
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	r.Close()
	if err != nil {
		w.Close()
		return func() {}
	}
	go func() { // which also keeps w from being collected, and so closed
		_ = cmd.Wait()
		w.Close()
	}()
	return func() { _ = cmd.Process.Kill() }
}
