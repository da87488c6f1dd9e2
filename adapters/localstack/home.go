package localstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"dropbell/adapters/localstack/child"
)

// home is the folder of one server.
type home struct {
	data    string // directory, created at initialization
	log     string // file
	release func()
}

// openHome prepares the folder for a server's data and locks it for this process. A second
// process gets an error that says so.
func openHome(ctx context.Context, o Options, server string) (home, error) {
	if o.Dir == "" {
		return temporaryHome(o, server)
	}
	base, err := filepath.Abs(o.Dir)
	if err != nil {
		return home{}, err
	}
	logs := filepath.Join(base, "log")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return home{}, err
	}
	release, err := lock(filepath.Join(base, server+".lock"))
	if err != nil {
		return home{}, fmt.Errorf("%s in %s: %w", server, base, err)
	}
	data, err := dataDir(ctx, o, base, server)
	if err != nil {
		release()
		return home{}, err
	}
	return home{data: data, log: filepath.Join(logs, server+".log"), release: release}, nil
}

// dataDir returns base/server. If the server's account cannot enter base, for example in a
// checkout below root's home folder, dataDir returns a folder below [elsewhere].
func dataDir(ctx context.Context, o Options, base, server string) (string, error) {
	data := filepath.Join(base, server)
	if server != "postgres" {
		return data, nil
	}
	acct, err := serverAccount(data)
	if acct != nil { // only where there is another account is there data elsewhere
		removeAbandoned(elsewhere, o.say)
	}
	if err != nil || acct.reaches(ctx, base) {
		return data, err
	}
	other, err := folderOf(elsewhere, base)
	if err != nil {
		return "", err
	}
	data = filepath.Join(other, server)
	o.say("%s cannot enter %s, so PostgreSQL keeps its data in %s", acct.name, base, data)
	return data, nil
}

// temporaryHome is in memory, but on disk for a durable server: measurements and crash tests
// need a real disk.
func temporaryHome(o Options, server string) (home, error) {
	parent := ""
	if !o.Durable {
		parent = memoryDir()
	}
	dir, err := os.MkdirTemp(parent, "dropbell-"+server+"-")
	if err != nil {
		return home{}, err
	}
	if err := os.Chmod(dir, 0o711); err != nil { // for the server's account to pass
		return home{}, err
	}
	dismiss := child.RemoveOrphaned(dir)
	release := func() {
		os.RemoveAll(dir)
		dismiss()
	}
	return home{data: filepath.Join(dir, "data"), log: filepath.Join(dir, server+".log"), release: release}, nil
}

var errInUse = errors.New("another process has it in use; stop that one first")

// lock holds path until release, or until this process ends in whatever way.
func lock(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errInUse
		}
		return nil, err
	}
	return func() { f.Close() }, nil
}

// tail returns the end of a server's log, for an error message.
func (h home) tail() string {
	raw, err := os.ReadFile(h.log)
	if err != nil {
		return ""
	}
	return string(raw[max(0, len(raw)-800):])
}
