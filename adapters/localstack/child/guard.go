package child

import (
	"os"
	"os/exec"
	"syscall"
)

// RemoveOrphaned removes dir when this program dies before it calls dismiss.
func RemoveOrphaned(dir string) (dismiss func()) {
	// The programs that wrote there die at the same moment; files that they still wrote
	// meanwhile are removed in the next round.
	return guard(`for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1"; sleep 0.2; done`, dir)
}

// guard starts a shell that waits for the end of this program, seen as the end
// of a pipe that only this program holds open, and then runs script.
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
