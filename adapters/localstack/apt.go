package localstack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// aptInstall installs packages for the whole machine. It fetches package lists only if apt does
// not find the packages without them.
func (m machine) aptInstall(ctx context.Context, log io.Writer, packages ...string) error {
	say(log, "installing %s with apt …", strings.Join(packages, ", "))
	if m.aptListed(ctx, packages...) == nil {
		return nil
	}
	if err := m.aptGet(ctx, "update"); err != nil {
		return err
	}
	return m.aptListed(ctx, packages...)
}

// aptListed installs packages that the lists on this machine name.
func (m machine) aptListed(ctx context.Context, packages ...string) error {
	return m.aptGet(ctx, append([]string{"install", "-y", "--no-install-recommends"}, packages...)...)
}

func (m machine) aptGet(ctx context.Context, args ...string) error {
	command := append([]string{"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=120"}, args...)
	if !m.root {
		command = append([]string{"sudo", "-n"}, command...)
	}
	return run(exec.CommandContext(ctx, command[0], command[1:]...))
}

// run runs the command. The error contains the end of the command's output.
func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	out = bytes.TrimSpace(out)
	if len(out) > 600 {
		out = out[len(out)-600:]
	}
	return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Args[0]), err, out)
}

// cacheDir is the folder for downloads. The account that servers run as can read it; it could
// not read root's own cache.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/dropbell", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory: %w", err)
	}
	return filepath.Join(dir, "dropbell"), nil
}

// aptUnpack downloads redis-server and its libraries and unpacks them into a folder. This needs
// no root rights.
func aptUnpack(ctx context.Context, log io.Writer, dir string) error {
	say(log, "downloading Redis with apt-get, unpacked for this user only …")
	packages, err := redisPackages(ctx)
	if err != nil {
		return err
	}
	debs, err := os.MkdirTemp("", "dropbell-debs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(debs)
	download := exec.CommandContext(ctx, "apt-get", append([]string{"download"}, packages...)...)
	download.Dir = debs
	if err := run(download); err != nil {
		return err
	}
	files, _ := filepath.Glob(filepath.Join(debs, "*.deb")) // the pattern is sound
	return replaceDir(dir, func(tmp string) error {
		for _, f := range files {
			if err := run(exec.CommandContext(ctx, "dpkg", "-x", f, tmp)); err != nil {
				return err
			}
		}
		return nil
	})
}

// redisPackages lists Redis and its libraries, except the base libraries of every Debian system:
// their versions must be the running system's versions.
func redisPackages(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests",
		"--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", "redis-server").Output()
	if err != nil {
		return nil, fmt.Errorf("ask apt what Redis needs: %w", err)
	}
	var packages []string
	for line := range strings.Lines(string(out)) {
		name := strings.TrimSpace(line)
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "<") {
			continue
		}
		if strings.HasPrefix(name, "redis") || strings.HasPrefix(name, "lib") || strings.HasPrefix(name, "lua") {
			packages = append(packages, name)
		}
	}
	return withoutBase(packages), nil
}

func withoutBase(packages []string) []string {
	var kept []string
	for _, p := range packages {
		base := strings.HasPrefix(p, "libc6") || strings.HasPrefix(p, "libgcc") || strings.HasPrefix(p, "libcrypt1")
		if !base {
			kept = append(kept, p)
		}
	}
	return kept
}

// replaceDir fills a temporary folder next to dir and moves it to dir when it is complete, so
// that an interrupted download is never taken for a complete download.
func replaceDir(dir string, fill func(tmp string) error) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}
