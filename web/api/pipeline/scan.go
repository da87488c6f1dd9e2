package pipeline

// Scanner reads a strict subset of JSON.
type Scanner struct{ rest []byte }

func NewScanner(text []byte) *Scanner { return &Scanner{text} }

func (s *Scanner) space() {
	for len(s.rest) > 0 {
		switch s.rest[0] {
		case ' ', '\t', '\r', '\n':
			s.rest = s.rest[1:]
		default:
			return
		}
	}
}

// Take consumes c, which may follow white space.
func (s *Scanner) Take(c byte) bool {
	s.space()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *Scanner) End() bool {
	s.space()
	return len(s.rest) == 0
}

// Object calls field for each name, which must consume the value.
func (s *Scanner) Object(field func(name string) bool) bool {
	if !s.Take('{') {
		return false
	}
	for {
		name, ok := s.Text()
		if !ok || !s.Take(':') || !field(name) {
			return false
		}
		if s.Take('}') {
			return true
		}
		if !s.Take(',') {
			return false
		}
	}
}

// Text reads a string of printable ASCII without quotes or escapes inside.
func (s *Scanner) Text() (string, bool) {
	if !s.Take('"') {
		return "", false
	}
	for i, c := range s.rest {
		if c == '"' {
			text := string(s.rest[:i])
			s.rest = s.rest[i+1:]
			return text, true
		}
		if c < ' ' || c > '~' || c == '\\' {
			return "", false
		}
	}
	return "", false
}

// ID reads a string that is a positive decimal number of at most 18 digits.
func (s *Scanner) ID(to *string) bool {
	text, ok := s.Text()
	if !ok || len(text) == 0 || len(text) > 18 || text[0] == '0' {
		return false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	*to = text
	return true
}

// Seconds reads a whole number of one to eleven digits that does not begin with 0, such
// as an instant in seconds since 1970.
func (s *Scanner) Seconds() (n int64, ok bool) {
	s.space()
	digits := 0
	for digits < len(s.rest) && digits < 12 && s.rest[digits] >= '0' && s.rest[digits] <= '9' {
		n = 10*n + int64(s.rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits > 11 || s.rest[0] == '0' {
		return 0, false
	}
	s.rest = s.rest[digits:]
	return n, true
}

// TwoDigits reads a number of one or two digits that does not begin with 0.
func (s *Scanner) TwoDigits() (n int, ok bool) {
	s.space()
	digits := 0
	for digits < len(s.rest) && digits < 3 && s.rest[digits] >= '0' && s.rest[digits] <= '9' {
		n = 10*n + int(s.rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits > 2 || s.rest[0] == '0' {
		return 0, false
	}
	s.rest = s.rest[digits:]
	return n, true
}
