package localstack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// RestoredElsewhere copies the database at url to a new PostgreSQL server of this test, with
// pg_dump and psql, and returns the URL of the copy. The new server counts its transactions from
// the beginning. The test is skipped if pg_dump or psql is missing.
func RestoredElsewhere(tb testing.TB, url string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	p, err := StartPostgres(ctx, Options{})
	if err != nil {
		tb.Fatalf("start another PostgreSQL: %v", err)
	}
	tb.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			tb.Errorf("stop the other PostgreSQL: %v", err)
		}
	})
	load := postgresTool("psql")
	if postgresTool("pg_dump") == "" || load == "" {
		tb.Skip("this machine has no pg_dump and psql")
	}
	if err := restore(ctx, url, load, p.URL()); err != nil {
		tb.Fatalf("restore the dump: %v", err)
	}
	return p.URL()
}

// postgresTool returns the path of a client program of PostgreSQL, "" if there is none.
func postgresTool(name string) string {
	for _, dir := range slices.Backward(postgresDirs(thisMachine())) { // globs list the newest version last
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// Dump returns the text that pg_dump makes of the database at url with the options given.
func Dump(ctx context.Context, url string, options ...string) ([]byte, error) {
	var text, said bytes.Buffer
	take := exec.CommandContext(ctx, postgresTool("pg_dump"), append(options, url)...)
	take.Stdout, take.Stderr = &text, &said
	if err := take.Run(); err != nil {
		return nil, fmt.Errorf("pg_dump: %w: %s", err, &said)
	}
	return text.Bytes(), nil
}

// restore loads a dump of the database at from into the database at to.
func restore(ctx context.Context, from, load, to string) error {
	text, err := Dump(ctx, from, "--no-owner")
	if err != nil {
		return err
	}
	var said bytes.Buffer
	put := exec.CommandContext(ctx, load, "--quiet", "--set=ON_ERROR_STOP=1", to)
	put.Stdin, put.Stderr = bytes.NewReader(text), &said
	if err := put.Run(); err != nil {
		return fmt.Errorf("psql: %w: %s", err, &said)
	}
	return nil
}
