package localstack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// npmFiles are the files that decide which packages are installed.
var npmFiles = []string{"package.json", "package-lock.json", ".npmrc"}

var errNoNPM = errors.New("npm is missing: install Node.js 22 (or 20.19 and newer of 20), https://nodejs.org")

// NPMPackages returns the folder node_modules with the packages that package-lock.json in dir
// pins. The packages are downloaded once for this machine. Without npm the test is skipped, or
// fails if the variable CI is set.
func NPMPackages(tb testing.TB, dir string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var modules string
	cache, err := cacheDir()
	if err == nil {
		modules, err = npmPackagesIn(ctx, os.Stderr, thisMachine(), dir, cache)
	}
	switch {
	case errors.Is(err, errNoNPM) && os.Getenv("CI") == "":
		tb.Skipf("SKIPPED, and it is not where CI is set: %v", err)
	case err != nil:
		tb.Fatalf("no npm packages for tests: %v", err)
	}
	return modules
}

// npmPackagesIn keeps packages in a folder of cache that is named after the
// contents of dir's package files.
func npmPackagesIn(ctx context.Context, log io.Writer, m machine, dir, cache string) (string, error) {
	if !m.npm || !has("node") {
		return "", errNoNPM
	}
	h := sha256.New()
	for _, name := range npmFiles {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(raw), raw)
	}
	home := filepath.Join(cache, "npm-"+m.platform+"-"+hex.EncodeToString(h.Sum(nil)[:8]))
	modules := filepath.Join(home, "node_modules")
	release, err := waitFor(ctx, home+".lock")
	if err != nil {
		return "", err
	}
	defer release()
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	say(log, "downloading packages with npm, for this machine and once …")
	return modules, replaceDir(home, func(tmp string) error { return npmInstall(ctx, dir, tmp) })
}

// npmInstall fills tmp/node_modules with exactly the packages of the lock file in dir, and
// verifies their checksums.
func npmInstall(ctx context.Context, dir, tmp string) error {
	for _, name := range npmFiles {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tmp, name), raw, 0o644); err != nil {
			return err
		}
	}
	ci := exec.CommandContext(ctx, "npm", "ci")
	ci.Dir = tmp
	return run(ci)
}

// waitFor locks path until release is called or this process ends in any way. It waits for a
// process that holds the lock now.
func waitFor(ctx context.Context, path string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	taken := func(context.Context) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	if err := until(ctx, nil, taken); err != nil {
		f.Close()
		return nil, fmt.Errorf("wait for %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
