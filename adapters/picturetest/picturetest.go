// Package picturetest is the contract test of the places where files of pictures are kept.
package picturetest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"dropbell/domain/picture"
)

// Of is a picture of the shop whose hash consists of the digit.
func Of(shop int64, digit string) picture.Picture {
	return picture.Picture{Shop: shop, Hash: strings.Repeat(digit, 64), Type: "png"}
}

// Files checks that files come back as they were, by shop and hash; that each step may be
// repeated, also by several callers at a time; and that an absent file is [picture.ErrNotFound].
func Files(t *testing.T, files picture.Files) {
	content := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	one, other := Of(10, "a"), Of(11, "a")
	absent := func(p picture.Picture) {
		t.Helper()
		if got, err := files.Get(t.Context(), p); !errors.Is(err, picture.ErrNotFound) {
			t.Errorf("an absent file: %d bytes, %v", len(got), err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	absent(one)
	must(files.Remove(t.Context(), one))
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			if err := files.Put(t.Context(), one, content); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	absent(other)
	absent(Of(10, "b"))
	got, err := files.Get(t.Context(), one)
	must(err)
	if !bytes.Equal(got, content) {
		t.Errorf("%d bytes came back as %d, or others", len(content), len(got))
	}
	must(files.Put(t.Context(), other, []byte("x")))
	must(files.Remove(t.Context(), one))
	must(files.Remove(t.Context(), one))
	absent(one)
	if got, err := files.Get(t.Context(), other); err != nil || string(got) != "x" {
		t.Errorf("the other shop's file: %q, %v", got, err)
	}
	must(files.Remove(t.Context(), other))
}
