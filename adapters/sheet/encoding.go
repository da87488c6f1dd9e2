package sheet

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"dropbell/domain/job"
)

// encodingOf returns the encoding with the name; nil for UTF-8, which needs no decoding. GB18030
// covers GBK and GB2312.
func encodingOf(name string) (e encoding.Encoding, known bool) {
	switch name {
	case job.UTF8:
		return nil, true
	case job.GB18030:
		return simplifiedchinese.GB18030, true
	case job.Big5:
		return traditionalchinese.Big5, true
	case job.Windows1252:
		return charmap.Windows1252, true
	}
	return nil, false
}

const (
	// enoughChars is how many characters beyond ASCII are examined in a file. A file with fewer
	// such characters is read to its end.
	enoughChars = 50_000
	// unmistakable is the share of common characters at which a text counts as being in an
	// encoding.
	unmistakable = 0.8
)

// tally counts the characters beyond ASCII of a text that is read in one encoding.
type tally struct {
	good, bad int
	// common counts the good characters in everyday use. wide counts the good characters without
	// an ASCII byte.
	common, wide int
}

func (t tally) share(n int) float64 {
	if t.good == 0 || t.bad*100 > t.good {
		return 0
	}
	return float64(n) / float64(t.good)
}

// detect finds the encoding of a text: UTF-8 if the text is valid, otherwise GB18030 or Big5 if
// nearly all characters are common in that encoding. Any other text is read as UTF-8, and its
// invalid rows are reported. ambiguous means that another encoding is possible.
func detect(text io.Reader) (name string, ambiguous bool, err error) {
	var utf, gb, big tally
	buf, n := make([]byte, sniffBytes), 0
	for err == nil && utf.good+utf.bad < enoughChars {
		var read int
		read, err = io.ReadFull(text, buf[n:])
		n += read
		whole := n
		if err == nil { // no byte below '0' is a part of a longer character
			if end := bytes.LastIndexFunc(buf[:n], func(r rune) bool { return r < '0' }); end >= 0 {
				whole = end + 1
			}
		}
		countUTF8(&utf, buf[:whole])
		countGB(&gb, buf[:whole])
		countBig5(&big, buf[:whole])
		n = copy(buf, buf[whole:n])
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", false, err
	}
	name, ambiguous = decide(utf, gb, big)
	return name, ambiguous, nil
}

func decide(utf, gb, big tally) (name string, ambiguous bool) {
	if utf.bad == 0 || utf.bad*20 <= utf.good {
		return job.UTF8, utf.bad > 0
	}
	asGB, asBig5 := gb.share(gb.common), big.share(big.common)
	near := max(asGB, asBig5)-min(asGB, asBig5) < 0.15
	switch {
	case asGB >= unmistakable && asGB >= asBig5:
		return job.GB18030, near
	case asBig5 >= unmistakable:
		return job.Big5, near
	case gb.share(gb.wide) >= unmistakable && big.share(big.good) == 0:
		return job.GB18030, true // rare characters, which Big5 does not have
	}
	return job.UTF8, true
}

func countUTF8(t *tally, text []byte) {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if i += size; r == utf8.RuneError && size == 1 {
			t.bad++
		} else {
			t.good++
		}
	}
}

// countGB counts the characters of GB2312 as common: its ideographs and its punctuation.
func countGB(t *tally, text []byte) {
	for i := 0; i < len(text); i++ {
		lead := text[i]
		if lead < 0x80 {
			continue
		}
		if lead == 0x80 || lead == 0xff || i+1 == len(text) {
			t.bad++
			continue
		}
		switch trail := text[i+1]; {
		case trail >= 0x40 && trail != 0x7f && trail != 0xff:
			t.good++
			if trail >= 0x80 {
				t.wide++
			}
			if trail >= 0xa1 && (lead >= 0xa1 && lead <= 0xa3 || lead >= 0xb0 && lead <= 0xf7) {
				t.common++
			}
			i++
		case trail >= '0' && trail <= '9' && i+3 < len(text) && text[i+2] > 0x80 && text[i+2] < 0xff && text[i+3] >= '0' && text[i+3] <= '9':
			t.good, t.wide = t.good+1, t.wide+1
			i += 3
		default:
			t.bad++
		}
	}
}

// countBig5 takes the first of its two levels for common, and its punctuation.
func countBig5(t *tally, text []byte) {
	for i := 0; i < len(text); i++ {
		lead := text[i]
		if lead < 0x80 {
			continue
		}
		if lead == 0x80 || lead == 0xff || i+1 == len(text) {
			t.bad++
			continue
		}
		trail := text[i+1]
		if trail < 0x40 || trail > 0x7e && trail < 0xa1 || trail == 0xff {
			t.bad++
			continue
		}
		t.good++
		if lead >= 0xa1 && lead <= 0xc6 {
			t.common++
		}
		i++
	}
}
