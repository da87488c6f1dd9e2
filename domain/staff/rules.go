package staff

import (
	"net/mail"
	"strings"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/wording"
)

// MaxEmail bounds an e-mail address, in bytes.
const MaxEmail = 254

func (in MemberInput) check() error {
	e := &fault.Fields{}
	checkEmail(e, NormalEmail(in.Email))
	checkName(e, in.Name, 120)
	if !in.Role.Valid() {
		e.Add("role", "rule.role", "must be viewer, marketer, operator or admin")
	}
	for _, shop := range in.Shops {
		if shop <= 0 {
			e.Add("shops", "rule.shop_number", "must be a positive number")
			break
		}
	}
	return e.Err()
}

// checkName refuses a name that is not one line of valid text or is too long.
func checkName(e *fault.Fields, name string, most int) {
	switch {
	case !wording.OneLine(name):
		e.Add("name", "rule.text", "must be valid text without control characters")
	case utf8.RuneCountInString(name) > most:
		e.Add("name", "rule.too_long", "must have at most %d characters", most)
	}
}

func checkEmail(e *fault.Fields, email string) {
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > MaxEmail || !strings.Contains(email, "@") {
		e.Add("email", "rule.email", "must be an e-mail address")
	}
}

// A Shown holds the fields of a member that the audit log keeps: never a hash.
type Shown struct {
	Email    string  `json:"email"`
	Name     string  `json:"name,omitempty"`
	Role     Role    `json:"role"`
	Shops    []int64 `json:"shops,omitempty"`
	Disabled bool    `json:"disabled,omitempty"`
}

// Shown returns the fields of m that the audit log keeps.
func (m Member) Shown() Shown { return Shown{m.Email, m.Name, m.Role, m.Shops, m.DisabledAt != nil} }
