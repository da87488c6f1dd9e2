package message

import (
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/wording"
)

// Limits of the texts that staff write: titles and bodies in runes, addresses in bytes.
const (
	MaxTitle  = 200
	MaxBody   = 4000
	MaxBlocks = 30
	MaxURL    = 500
	// maxAddress is the longest mail address that servers take (RFC 5321).
	maxAddress     = 254
	maxPostal      = 300
	maxPostalLines = 6
)

// Check returns a [fault.Fields] that names every rule that t breaks as the text for k, or nil.
// Errors about variables name the line.
func (t Text) Check(k Key) error {
	e := &fault.Fields{}
	if k.Kind != Names {
		t.bounded(e, false)
	}
	if len(e.List) > 0 {
		return e.Err()
	}
	if tag, ok := Canonical(k.Language); k.Kind != Settings && k.Kind != Picture && (!ok || tag != k.Language) {
		e.Add("language", "rule.locale", "must be a language tag such as en or zh-CN")
	}
	switch {
	case k.Kind == Settings:
		t.Shop.check(e)
	case k.Kind == Picture:
		if len(t.Blocks) != 1 || t.Blocks[0].Type != Image {
			e.Add("picture", "rule.required", "must not be empty")
			return e.Err()
		}
		t.Blocks[0].check(e, "picture", Names)
	case k.Kind == Names:
		checkLine(e, "title", t.Title, k.Kind, true)
		checkLines(e, "body", t.Body, k.Kind, false)
	case !slices.Contains(Written(), k.Kind) || !slices.Contains(Channels(), k.Channel):
		e.Add("kind", "rule.kind", "must be one of the choices")
	default:
		if k.Channel.Titled() {
			checkLine(e, "title", t.Title, k.Kind, true)
		}
		t.checkBody(e, k)
	}
	return e.Err()
}

func (t Text) checkBody(e *fault.Fields, k Key) {
	if k.Channel != Email {
		checkLines(e, "body", t.Body, k.Kind, true)
		if k.Channel == SMS && len(e.List) == 0 {
			f := SampleFacts(k.Kind)
			size := SizeOf(Compile(k, t, Shop{}).Bind(f, f.Drop, time.UTC, false).Content("Wilhelmina", f.Link).Text)
			if size.Parts > MaxSMSParts {
				e.Add("body", "rule.sms_parts", "takes %d parts as an SMS; networks carry at most %d", size.Parts, MaxSMSParts)
			}
		}
		return
	}
	if len(t.Blocks) == 0 || len(t.Blocks) > MaxBlocks {
		e.Add("blocks", "rule.blocks", "must be between 1 and %d blocks", MaxBlocks)
		return
	}
	for i, b := range t.Blocks {
		b.check(e, BlockField(i), k.Kind)
	}
	if len(e.List) > 0 {
		return
	}
	f := SampleFacts(k.Kind)
	page := Compile(k, t, Shop{Logo: "https://logo.example/" + strings.Repeat("x", MaxURL)}).Bind(f, f.Drop, time.UTC, false).Content("Wilhelmina", f.Link).HTML
	if len(page) > MaxMail {
		e.Add("blocks", "rule.mail_size", "make a mail of %d kB; mail programs cut off what is longer than %d kB", len(page)/1000, MaxMail/1000)
	}
}

// CheckBlocks adds the rules that the blocks of a campaign's mail break to e. name is the field of
// the blocks; a text without blocks breaks none.
func CheckBlocks(e *fault.Fields, name string, t Text) {
	if len(t.Blocks) == 0 {
		return
	}
	broken := &fault.Fields{}
	t.checkBody(broken, Key{Kind: Campaign, Channel: Email, Language: English})
	for _, f := range broken.List {
		if number, one := strings.CutPrefix(f.Name, "block."); one {
			f.Name = name + "." + number
		} else {
			f.Name = name
		}
		e.List = append(e.List, f)
	}
}

// BlockField is the name of the field of a mail's block, from 0.
func BlockField(i int) string { return "block." + strconv.Itoa(i+1) }

func (b Block) check(e *fault.Fields, name string, k Kind) {
	switch b.Type {
	case Heading, Button:
		checkLine(e, name, b.Text, k, true)
	case Words, Footer:
		checkLines(e, name, b.Text, k, true)
	case Coupon:
	case Image:
		checkLine(e, name, b.Text, k, true)
		if !safeImage(b.URL) {
			e.Add(name+".url", "rule.image_url", "must be an https address of at most %d characters", MaxURL)
		}
	default:
		e.Add(name, "rule.kind", "must be one of the choices")
	}
}

// SafeAddress reports whether a message may contain the address: https, with a host, and at most
// [MaxURL] bytes.
func SafeAddress(address string) bool {
	return Followed(address) && strings.HasPrefix(address, "https:") && len(address) <= MaxURL && utf8.ValidString(address)
}

// safeImage is [SafeAddress] for pictures, which a program on this machine may serve.
func safeImage(address string) bool {
	return SafeAddress(address) || ofThisMachine(address) && len(address) <= MaxURL && utf8.ValidString(address)
}

// ofThisMachine reports whether the address is of a picture that was uploaded to a program on this
// machine, which has no https.
func ofThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || !strings.Contains(u.Path, "/pictures/") {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

func (s *Shop) check(e *fault.Fields) {
	if s == nil {
		e.Add("language", "rule.required", "is required")
		return
	}
	if tag, ok := Canonical(s.Language); s.Language != "" && (!ok || tag != s.Language) {
		e.Add("language", "rule.locale", "must be a language tag such as en or zh-CN")
	}
	if s.Logo != "" && !safeImage(s.Logo) {
		e.Add("logo", "rule.image_url", "must be an https address of at most %d characters", MaxURL)
	}
	if s.Colour != "" && !ValidColour(s.Colour) {
		e.Add("colour", "rule.colour", "must be a colour such as #c2410c")
	}
	s.checkSender(e)
	if s.PartPrice < 0 || s.PartPrice > 1_000_000_000 {
		e.Add("part_price", "rule.part_price", "must be a price of at most 100000")
	}
	if (s.PartPrice != 0 || s.Currency != "") && !money.ValidCurrency(s.Currency) {
		e.Add("currency", "rule.currency", "must be a three-letter ISO 4217 code such as CNY")
	}
}

// checkSender adds what is wrong about the sender of mails. What it accepts fits in one header
// line: it has no line breaks and no control characters.
func (s *Shop) checkSender(e *fault.Fields) {
	checkLine(e, "sender", s.Sender, Names, false)
	if n := len(s.ReplyTo); n > 0 {
		a, err := mail.ParseAddress(s.ReplyTo)
		if err != nil || a.Address != s.ReplyTo || n > maxAddress || strings.ContainsFunc(s.ReplyTo, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			e.Add("reply_to", "rule.email", "must be a mail address such as help@example.com")
		}
	}
	for _, k := range append(Written(), Campaign) {
		before := len(e.List)
		if checkLine(e, "preheader", s.Preheader, k, false); len(e.List) > before {
			break // variables must have a value in every message
		}
	}
	if strings.Count(s.Postal, "\n") >= maxPostalLines || utf8.RuneCountInString(s.Postal) > maxPostal {
		e.Add("postal_address", "rule.postal", "must have at most %d lines and %d characters", maxPostalLines, maxPostal)
	} else {
		checkLines(e, "postal_address", s.Postal, Names, false)
	}
}

func checkLine(e *fault.Fields, name, s string, k Kind, required bool) {
	switch {
	case strings.ContainsAny(s, "\r\n\t"):
		e.Add(name, "rule.one_line", "must be one line")
	case utf8.RuneCountInString(s) > MaxTitle:
		e.Add(name, "rule.too_long", "must have at most %d characters", MaxTitle)
	default:
		checkLines(e, name, s, k, required)
	}
}

func checkLines(e *fault.Fields, name, s string, k Kind, required bool) {
	switch {
	case !utf8.ValidString(s), strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }),
		strings.ContainsFunc(s, wording.TurnsAround):
		e.Add(name, "rule.text", "contains characters that cannot be stored")
	case required && strings.TrimSpace(s) == "":
		e.Add(name, "rule.required", "must not be empty")
	case utf8.RuneCountInString(s) > MaxBody:
		e.Add(name, "rule.too_long", "must have at most %d characters", MaxBody)
	default:
		if err := CheckVariables(s, k); err != nil {
			e.Add(name, err.Key, "%s", err.Error())
		}
	}
}

// CheckVariables returns the first error in the variables of a text for messages of the kind: a
// variable that cannot be read, a name without a fallback although it may be missing, or a
// fallback that is no address. It returns nil if there is no error, or if the text is longer than
// the limit for reading.
func CheckVariables(s string, k Kind) *SyntaxError {
	if k == Names || longer(s, MaxBody) {
		return nil // names are values themselves
	}
	p, err := Parse(s, k)
	var mistake *SyntaxError
	if errors.As(err, &mistake) {
		return mistake
	}
	var first *SyntaxError
	p.each(func(v part, bare bool) {
		switch {
		case first != nil:
		case v.variable == VarUser && bare:
			first = &SyntaxError{v.line, "rule.variable_fallback", "{{user}} is empty for readers without a name; write {{user|there}}"}
		case v.variable == VarLink && v.fallback != "" && !Followed(v.fallback):
			first = &SyntaxError{v.line, "rule.variable_link", fmt.Sprintf("the fallback of {{link}} must be an http or https address, not %q", head(v.fallback))}
		}
	})
	return first
}

// Missing returns which of the facts that a text for k can contain are missing in it: the shop,
// the worth, the time or the link.
func (t Text) Missing(k Key) []string {
	if !slices.Contains(Written(), k.Kind) {
		return nil
	}
	c := Compile(k, t, Shop{})
	var list []string
	for _, says := range [][]string{{VarShop}, {VarWorth}, {VarOpensAt, VarTime, VarExpires}, {VarLink}} {
		possible := slices.ContainsFunc(says, func(v string) bool { return slices.Contains(Variables(k.Kind), v) })
		if says[0] == VarLink && k.Channel != Email && k.Channel != SMS {
			possible = false // apps and push open the link by themselves
		}
		if possible && !slices.ContainsFunc(says, c.Uses) {
			list = append(list, says[0])
		}
	}
	return list
}

// The time left in previews of a reminder, of a notice and of a coupon that was won, in minutes, days and hours.
const SampleMinutes, SampleDays, SampleHours = 10, 3, 48

// SampleFacts returns the facts of a made-up drop for a message of the kind. They are used where
// there is no real drop.
func SampleFacts(k Kind) Facts {
	return Facts{Kind: k, Drop: "Spring sale", Description: "Tea and cakes, all day long.", Shop: "Corner shop", Worth: Worth{Percent: 20, Most: 3000, Currency: "CNY"},
		OpensAt: time.Date(2030, 5, 20, 12, 0, 0, 0, time.UTC), Minutes: SampleMinutes, Days: SampleDays, Hours: SampleHours, Link: "https://shop.example/drops/1"}
}
