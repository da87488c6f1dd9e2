package localstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that a server runs as, if not the caller; nil = the caller. PostgreSQL
// refuses to run as root.
type account struct {
	name     string
	uid, gid int
}

// serverAccount returns the account for PostgreSQL's data in dir: nil if the caller is not root,
// the owner of existing data, or one of the system accounts postgres and nobody.
func serverAccount(dir string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if uid, gid, ok := owner(dir); ok && uid != 0 {
		return &account{name: "user " + strconv.Itoa(uid), uid: uid, gid: gid}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil {
			return &account{name: name, uid: uid, gid: gid}, nil
		}
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres or nobody to run it")
}

func owner(path string) (uid, gid int, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(s.Uid), int(s.Gid), true
}

// command prepares a program to run as a.
func (a *account) command(ctx context.Context, env []string, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/" // the caller's own directory may be closed to a
	cmd.Env = append(os.Environ(), env...)
	if a != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)},
		}
	}
	return cmd
}

// own makes dir, for a alone.
func (a *account) own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if a == nil {
		return nil
	}
	return os.Chown(dir, a.uid, a.gid)
}

// reaches reports whether a may enter dir and every directory above it.
func (a *account) reaches(ctx context.Context, dir string) bool {
	return a == nil || a.command(ctx, nil, "sh", "-c", `cd "$1"`, "sh", dir).Run() == nil
}
