package wechat

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/domain/user"
)

// A field is one of the fields of the subscription message.
type field struct {
	name string
	kind string // the beginning of the name: WeChat's type of the value
	text message.Pattern
}

// maxFields is how many fields a message may have; WeChat's have five.
const maxFields = 10

var fieldName = regexp.MustCompile(`^([a-z]+(?:_[a-z]+)?)\d{1,3}$`)

// parseData reads the fields of a message, one a line.
func parseData(s string) (list []field, err error) {
	for n, line := range strings.Split(s, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, text, ok := strings.Cut(line, "=")
		kind := fieldName.FindStringSubmatch(strings.TrimSpace(name))
		if !ok || kind == nil {
			return nil, fmt.Errorf("line %d must be a field of the message and its text, such as thing1 = {{drop}}", n+1)
		}
		f := field{name: kind[0], kind: kind[1]}
		if f.text, err = message.Parse(strings.TrimSpace(text), message.Reminder); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		list = append(list, f)
	}
	if len(list) == 0 || len(list) > maxFields {
		return nil, errors.New("name the fields of the message, one a line, such as thing1 = {{drop}}")
	}
	return list, nil
}

// A request is the body of cgi-bin/message/subscribe/send.
type request struct {
	ToUser   string           `json:"touser"`
	Template string           `json:"template_id"`
	Page     string           `json:"page,omitempty"`
	Version  string           `json:"miniprogram_state"`
	Lang     string           `json:"lang"`
	Data     map[string]value `json:"data"`
}

type value struct {
	Value string `json:"value"`
}

// body encodes the message to one account.
func (s *Service) body(m delivery.Message, d user.Device) []byte {
	values := map[string]string{}
	if m.Values != nil {
		values = m.Values()
	}
	r := request{ToUser: d.Token, Template: s.cfg.Template, Version: s.cfg.Version, Lang: language(m.To.Locale), Data: map[string]value{},
		Page: strings.ReplaceAll(s.cfg.Page, "{id}", strconv.FormatInt(m.Subject.TemplateID, 10))}
	for _, f := range s.data {
		r.Data[f.name] = value{f.value(values, m)}
	}
	return sender.JSON(r)
}

// value is the text of the field, in the form that WeChat demands of its type.
func (f field) value(values map[string]string, m delivery.Message) string {
	if (f.kind == "time" || f.kind == "date") && !m.Subject.OpensAt.IsZero() {
		at := m.Subject.OpensAt.In(m.To.Zone())
		values = with(values, message.VarOpensAt, at.Format("2006年1月2日 15:04"))
		values = with(values, message.VarTime, at.Format("15:04"))
	}
	return fit(f.kind, f.text.With(values))
}

func with(values map[string]string, name, v string) map[string]string {
	all := make(map[string]string, len(values)+1)
	for k, old := range values {
		all[k] = old
	}
	all[name] = v
	return all
}

// language is the language of the words that WeChat adds to the message.
func language(locale string) string {
	tag := strings.ToLower(locale)
	switch {
	case tag == "":
		return "zh_CN"
	case strings.HasPrefix(tag, "zh-hk"), strings.HasPrefix(tag, "zh-hant-hk"):
		return "zh_HK"
	case strings.HasPrefix(tag, "zh-tw"), strings.HasPrefix(tag, "zh-hant"):
		return "zh_TW"
	case strings.HasPrefix(tag, "zh"):
		return "zh_CN"
	}
	return "en_US"
}

// A rule is WeChat's limit for the values of a type (订阅消息参数值内容限制说明): how many characters, which
// characters, and the text that replaces a value without permitted characters, since WeChat
// refuses an empty value.
type rule struct {
	most  int
	takes func(r rune) bool
	empty string
}

var rules = map[string]rule{
	"thing":            {20, printable, "-"},
	"number":           {32, func(r rune) bool { return r >= '0' && r <= '9' || r == '.' || r == '-' }, "0"},
	"letter":           {32, func(r rune) bool { return r < unicode.MaxASCII && unicode.IsLetter(r) }, "A"},
	"symbol":           {5, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }, "-"},
	"character_string": {32, func(r rune) bool { return r > ' ' && r < unicode.MaxASCII }, "-"},
	"time":             {64, printable, "00:00"},
	"date":             {64, printable, "00:00"},
	"amount":           {13, printable, "0"},
	"phone_number":     {17, func(r rune) bool { return r > ' ' && r < unicode.MaxASCII && !unicode.IsLetter(r) }, "0"},
	"car_number":       {8, printable, "-"},
	"phrase":           {5, func(r rune) bool { return unicode.Is(unicode.Han, r) }, "无"},
	"name":             {20, printable, "-"},
}

// printable are characters without line feeds and other control characters.
func printable(r rune) bool { return !unicode.IsControl(r) && r != unicode.ReplacementChar }

// fit cuts a value to WeChat's limits for its type.
func fit(kind, text string) string {
	limit, ok := rules[kind]
	if !ok { // a value of a list, which stands as it is
		limit = rule{20, printable, "-"}
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) }), " ")
	kept := strings.TrimSpace(strings.Map(func(r rune) rune {
		if !limit.takes(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
	if kind == "name" && strings.ContainsFunc(kept, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		limit.most = 10
	}
	if _, err := strconv.ParseFloat(kept, 64); kind == "number" && err != nil {
		kept = strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, kept)
	}
	runes := []rune(kept)
	switch {
	case len(runes) == 0:
		return limit.empty
	case len(runes) <= limit.most:
		return kept
	case kind == "thing":
		return string(runes[:limit.most-1]) + "…"
	}
	return string(runes[:limit.most])
}
