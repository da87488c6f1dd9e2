package localstack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/localstack/child"
)

// elsewhere is where data lies that cannot lie in the folder it belongs to.
const elsewhere = "/var/lib/dropbell"

// ownerNote, in a folder elsewhere, holds the path of the folder it belongs to.
const ownerNote = "owner"

// folderOf returns the folder below root that belongs to the folder base, and writes a note with
// base into it.
func folderOf(root, base string) (string, error) {
	dir := filepath.Join(root, nameOf(base))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	note := filepath.Join(dir, ownerNote)
	if err := os.WriteFile(note+".new", []byte(base+"\n"), 0o644); err != nil {
		return "", err
	}
	return dir, os.Rename(note+".new", note)
}

func nameOf(base string) string {
	sum := sha256.Sum256([]byte(base))
	return hex.EncodeToString(sum[:6])
}

// abandonedAfter is how long a folder must be unused before it counts as abandoned. A disk that
// is unmounted for a while comes back sooner.
const abandonedAfter = 3 * 24 * time.Hour

// removeAbandoned removes each folder below root whose owner folder no longer exists. It keeps
// folders that were used lately, folders with no note or a wrong note, and folders with a server
// that still runs.
func removeAbandoned(root string, say func(format string, args ...any)) {
	list, err := os.ReadDir(root)
	if err != nil {
		return // nothing was ever put there
	}
	for _, f := range list {
		dir := filepath.Join(root, f.Name())
		note, err := os.Stat(filepath.Join(dir, ownerNote)) // written at every start
		if err != nil || time.Since(note.ModTime()) < abandonedAfter {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, ownerNote))
		base := strings.TrimSuffix(string(raw), "\n")
		if err != nil || !f.IsDir() || f.Name() != nameOf(base) {
			continue
		}
		if _, err := os.Stat(base); !errors.Is(err, os.ErrNotExist) || inUse(filepath.Join(dir, "postgres")) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			say("%s is not needed any more, and cannot be removed: %v", dir, err)
			continue
		}
		say("removed %s: %s, to which it belonged, is gone", dir, base)
	}
}

// inUse reports whether a PostgreSQL runs on the data.
func inUse(data string) bool {
	raw, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	return err == nil && serves(pid, data)
}

// serves reports whether the process is a PostgreSQL on this data.
func serves(pid int, data string) bool { return strings.Contains(child.CommandLine(pid), "-D "+data) }
