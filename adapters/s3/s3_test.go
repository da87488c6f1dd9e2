//go:build s3

package s3_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/exporttest"
	"dropbell/adapters/localstack"
	"dropbell/adapters/picturetest"
	"dropbell/adapters/s3"
	"dropbell/domain/export"
	"dropbell/domain/fault"
	"dropbell/domain/picture"
	"dropbell/musttest"
)

const (
	keyID  = "pictures-test"
	secret = "pictures-test-secret"
)

// server starts Versity's S3 gateway, which testdata/server pins, on an empty folder with the
// bucket "pictures". It returns the server's address and the folder. The program is built once for a
// machine.
func server(t *testing.T) (address, root string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "versitygw")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/versity/versitygw/cmd/versitygw")
	build.Dir = filepath.Join("testdata", "server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the S3 server could not be built: %v\n%s", err, out)
	}
	root = t.TempDir()
	musttest.OK(t, os.Mkdir(filepath.Join(root, "pictures"), 0o755))
	port, err := localstack.FreePort(17070)
	musttest.OK(t, err)
	address = fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.CommandContext(context.Background(), program, "--port", address, "--access", keyID, "--secret", secret, "posix", "--sidecar", t.TempDir(), root)
	musttest.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_ = c.Close()
			return "http://" + address, root
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the S3 server does not listen")
		}
	}
}

func open(t *testing.T, c s3.Config) *s3.Files {
	t.Helper()
	f, err := s3.New(c)
	musttest.OK(t, err)
	return f
}

func TestContract(t *testing.T) {
	address, root := server(t)
	c := s3.Config{Endpoint: address, Bucket: "pictures", KeyID: keyID, Secret: secret}
	picturetest.Files(t, open(t, c))
	exporttest.Files(t, open(t, c), func(key string) []byte {
		content, err := os.ReadFile(filepath.Join(root, "pictures", key))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		return content
	})

	// A wrong secret, a missing bucket and a store that does not answer can be told from an absent
	// file.
	for name, change := range map[string]func(*s3.Config){
		"secret": func(c *s3.Config) { c.Secret = "another" },
		"bucket": func(c *s3.Config) { c.Bucket = "nowhere" },
		"store":  func(c *s3.Config) { c.Endpoint = "http://127.0.0.1:1" },
	} {
		wrong := c
		change(&wrong)
		files := open(t, wrong)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if _, err := files.Get(ctx, picturetest.Of(10, "a")); !errors.Is(err, picture.ErrStore) || fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		if err := files.Put(ctx, picturetest.Of(10, "a"), []byte("x")); !errors.Is(err, picture.ErrStore) {
			t.Errorf("%s: %v", name, err)
		}
		if err := files.Write(ctx, "exports/1/a.csv.gz", strings.NewReader("x")); !errors.Is(err, export.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}

	// Files that the database had before are still read.
	old := &memory{}
	musttest.OK(t, old.Put(t.Context(), picturetest.Of(10, "c"), []byte("old")))
	both := picture.Both{First: open(t, c), Second: old}
	if got, err := both.Get(t.Context(), picturetest.Of(10, "c")); err != nil || string(got) != "old" {
		t.Errorf("an older file: %q, %v", got, err)
	}
	picturetest.Files(t, picture.Both{First: open(t, c), Second: &memory{}})
}

// memory keeps files in memory.
type memory map[string][]byte

func (m *memory) Put(_ context.Context, p picture.Picture, content []byte) error {
	if *m == nil {
		*m = memory{}
	}
	(*m)[p.Path()] = content
	return nil
}

func (m *memory) Get(_ context.Context, p picture.Picture) ([]byte, error) {
	content, ok := (*m)[p.Path()]
	if !ok {
		return nil, picture.ErrNotFound
	}
	return content, nil
}

func (m *memory) Remove(_ context.Context, p picture.Picture) error {
	delete(*m, p.Path())
	return nil
}
