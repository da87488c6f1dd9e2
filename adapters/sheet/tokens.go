package sheet

import (
	"encoding/xml"
	"io"
)

const (
	// tokenBytes bounds one tag, text or comment of a member.
	tokenBytes = 1 << 20
	// maxDepth bounds the nesting of elements.
	maxDepth = 64
)

// tokens reads the XML of one member, which is untrusted. No part of the XML is held longer than
// a token, and the size of a token is limited.
type tokens struct {
	file  io.ReadCloser
	xml   *xml.Decoder
	left  int
	depth int
	// err is an error of reading the file, unlike an error in its XML.
	err error
}

func newTokens(file io.ReadCloser) *tokens {
	t := &tokens{file: file}
	t.xml = xml.NewDecoder(t)
	return t
}

// Read is for the decoder.
func (t *tokens) Read(p []byte) (int, error) {
	if t.left <= 0 {
		return 0, errBroken()
	}
	n, err := t.file.Read(p)
	t.left -= n
	if err != nil && err != io.EOF {
		t.err = err
	}
	return n, err
}

// next returns the next tag or text, and [io.EOF] after a complete document. Any other error
// says what is wrong with the document.
func (t *tokens) next() (xml.Token, error) {
	t.left = tokenBytes
	token, err := t.xml.RawToken()
	if err == io.EOF && t.depth == 0 {
		return nil, io.EOF
	}
	if err != nil {
		return nil, t.broken()
	}
	switch token.(type) {
	case xml.StartElement:
		t.depth++
	case xml.EndElement:
		t.depth--
	}
	if t.depth < 0 || t.depth > maxDepth {
		return nil, errBroken()
	}
	return token, nil
}

// broken distinguishes a file that cannot be read now from a damaged one.
func (t *tokens) broken() error {
	if t.err == nil || damaged(t.err) {
		return errBroken()
	}
	return t.err
}

// each calls do with every element of the document that has the name.
func (t *tokens) each(name string, do func(attributes []xml.Attr) error) error {
	for {
		token, err := t.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == name {
			if err := do(start.Attr); err != nil {
				return err
			}
		}
	}
}

// attribute returns the attribute of that name, without or with a namespace.
func attribute(list []xml.Attr, name string, prefixed bool) string {
	for _, a := range list {
		if a.Name.Local == name && (a.Name.Space != "") == prefixed {
			return a.Value
		}
	}
	return ""
}
