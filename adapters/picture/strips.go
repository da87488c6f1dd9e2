package picture

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"sync"

	"github.com/kovidgoyal/imaging"

	"dropbell/domain/picture"
)

// The strip of a pass of Apple's Wallet, in points.
const (
	stripWidth  = 375
	stripHeight = 144
)

// keptStrips is how many strips a process remembers.
const keptStrips = 64

// Strips makes the strips of passes from stored pictures. It is safe for concurrent use.
type Strips struct {
	Files     picture.Files
	Converter Converter
	// Public is the address below which the pictures are served.
	Public string

	mu   sync.Mutex
	kept map[string]map[string][]byte // by address
}

// Of returns the files of the strip for the picture at the address, by their name in a pass. It
// returns nothing for a picture of another server, which is never fetched, and an error if the
// picture cannot be read.
func (s *Strips) Of(ctx context.Context, address string) (map[string][]byte, error) {
	p, ok := picture.Addressed(s.Public, address)
	if !ok {
		return nil, nil
	}
	s.mu.Lock()
	files, ok := s.kept[address]
	s.mu.Unlock()
	if ok {
		return files, nil
	}
	content, err := s.Files.Get(ctx, p)
	if err != nil {
		return nil, err
	}
	if files, err = s.Converter.strip(ctx, content); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || len(s.kept) >= keptStrips {
		s.kept = map[string]map[string][]byte{}
	}
	s.kept[address] = files
	return files, nil
}

// strip cuts the middle of a stored picture to the form of a strip.
func (c Converter) strip(ctx context.Context, content []byte) (map[string][]byte, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, picture.ErrBusy
	}
	img, _, err := image.Decode(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("decode a stored picture: %w", err)
	}
	files := map[string][]byte{}
	for name, scale := range map[string]int{"strip.png": 1, "strip@2x.png": 2} {
		var b bytes.Buffer
		if err := png.Encode(&b, imaging.Fill(img, stripWidth*scale, stripHeight*scale, imaging.Center, imaging.Lanczos)); err != nil {
			return nil, fmt.Errorf("encode a strip: %w", err)
		}
		files[name] = b.Bytes()
	}
	return files, nil
}
