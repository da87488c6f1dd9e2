package staff

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/fault"
)

// Bounds of a password's length, in characters. The upper bound keeps hashing from
// being used to exhaust memory.
const (
	MinPassword = 12
	MaxPassword = 200
)

// DemoPassword is the well-known password of the demo's admin. It opens a console on the same
// machine only.
const DemoPassword = "ring-the-bell"

// How many characters of a password must lie outside of patterns.
const (
	unpatterned = 6 // outside of runs such as 12345 or qwerty, and of years
	unowned     = 8 // outside of words of the owner's address and name, and of the word Dropbell
)

// CheckPassword returns a [fault.Fields] about the field "password" if a member
// with this address and name may not use the password.
func CheckPassword(password, email, name string) error {
	e := &fault.Fields{}
	checkPassword(e, password, email, name)
	return e.Err()
}

// checkPassword adds the first rule that the password breaks. Its message says how
// to correct the password.
func checkPassword(e *fault.Fields, password, email, name string) {
	n := utf8.RuneCountInString(password)
	low := strings.ToLower(password)
	switch {
	case n < MinPassword || n > MaxPassword:
		e.Add("password", "rule.password", "must have between %d and %d characters", MinPassword, MaxPassword)
	case owned(low, strings.ToLower(email), strings.ToLower(name)):
		e.Add("password", "rule.password_own",
			"must not be made of the e-mail address, the name or the word Dropbell; choose several words that have nothing to do with them")
	case patterned(low):
		e.Add("password", "rule.password_pattern",
			"must not be a repetition, a sequence or a row of keys, such as 123456 or qwerty; choose several words that do not belong together")
	case common(low):
		e.Add("password", "rule.password_common",
			"is one of the commonest passwords, or one with digits added; choose several words that do not belong together")
	}
}

// owned reports whether the password contains the address, or consists mostly of
// parts of the address, of the name and of the word Dropbell. All texts are in
// lower case.
func owned(password, email, name string) bool {
	if email != "" && strings.Contains(password, email) {
		return true
	}
	words := strings.FieldsFunc(email+" "+name+" dropbell", func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	rest := password
	for _, w := range words {
		if utf8.RuneCountInString(w) >= 3 {
			rest = strings.ReplaceAll(rest, w, "")
		}
	}
	return rest != password && utf8.RuneCountInString(rest) < unowned
}

// keyRows are rows in the order in which a finger follows them.
var keyRows = []string{"abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "azertyuiop",
	"1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik", "qazwsxedcrfvtgbyhnujmik", "1q2w3e4r5t6y7u8i9o0p", "q1w2e3r4t5y6u7i8o9p0", "!@#$%^&*()"}

// patterned reports whether the password repeats something short, has few
// different characters, or is made of runs along keyRows and of years.
func patterned(password string) bool {
	unit := []rune(repeated(password))
	if len(unit) < unpatterned {
		return true
	}
	different := map[rune]bool{}
	for _, r := range unit {
		different[r] = true
	}
	return len(different) < 5 || unexplained(unit) < unpatterned
}

// repeated returns the shortest text of which s is a repetition.
func repeated(s string) string {
	for n := 1; n <= len(s)/2; n++ {
		if len(s)%n == 0 && strings.Repeat(s[:n], len(s)/n) == s {
			return s[:n]
		}
	}
	return s
}

// unexplained returns how many characters of s are neither in a run of at least
// four characters nor in a year.
func unexplained(s []rune) (n int) {
	for len(s) > 0 {
		if skip := max(run(s), year(s)); skip > 0 {
			s = s[skip:]
			continue
		}
		s, n = s[1:], n+1
	}
	return n
}

// run returns how many characters at the beginning of s follow one of the rows, in
// either direction, or are all the same; 0 if there are fewer than four.
func run(s []rune) (longest int) {
	for longest < len(s) && s[longest] == s[0] {
		longest++
	}
	for _, row := range keyRows {
		for _, r := range [2]string{row, reversed(row)} {
			for i := len(s); i > longest && i >= 4; i-- {
				if strings.Contains(r, string(s[:i])) {
					longest = i
				}
			}
		}
	}
	if longest < 4 {
		return 0
	}
	return longest
}

func reversed(s string) string {
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return string(r)
}

// year returns 4 if s begins with a year from 1900 to 2099, else 0.
func year(s []rune) int {
	if len(s) >= 4 && unicode.IsDigit(s[2]) && unicode.IsDigit(s[3]) && (string(s[:2]) == "19" || string(s[:2]) == "20") {
		return 4
	}
	return 0
}

//go:embed commonpasswords.txt
var commonText string

// commonPasswords are the lines of commonpasswords.txt.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(commonText) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			set[line] = true
		}
	}
	return set
})

// written replaces characters that imitate letters.
var written = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")

// common reports whether the password, in lower case, is one of the most common
// passwords: once or repeated, with letters replaced by signs, or with digits and
// signs around it.
func common(password string) bool {
	set := commonPasswords()
	for _, s := range []string{password, bare(password)} {
		for _, core := range []string{s, repeated(s), written.Replace(s), bare(repeated(s))} {
			if set[core] {
				return true
			}
		}
	}
	return false
}

// bare returns s without digits and signs around it.
func bare(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
}
