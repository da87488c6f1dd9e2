package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/views/i18n"
)

// Machine writes an instant for scripts.
func Machine(t time.Time) string { return machine(t) }

// machine writes an instant for <time datetime> and for scripts.
func machine(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func boolWord(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func memberName(m staff.Member) string {
	if m.Name != "" {
		return m.Name
	}
	return m.Email
}

// initials returns at most two letters; for names without spaces, such as Chinese names, the first
// letter.
func initials(m staff.Member) string {
	words := strings.FieldsFunc(memberName(m), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	out := ""
	for _, w := range words[:min(2, len(words))] {
		out += strings.ToUpper(string([]rune(w)[0]))
		if !strings.Contains(memberName(m), " ") {
			break
		}
	}
	return out
}

// Severity orders problems: existing failures come before warnings.
func Severity(t Tone) int {
	switch t {
	case Bad:
		return 0
	case Warn, Late:
		return 1
	}
	return 2
}

func toneIcon(t Tone) string {
	switch t {
	case Good:
		return "circle-check"
	case Warn, Late:
		return "alert-triangle"
	case Bad:
		return "alert-circle"
	}
	return "info-circle"
}

// Countdown formats the time until t in the form that app.js updates.
func Countdown(ctx context.Context, t time.Time) string {
	d := max(0, t.Sub(From(ctx).Now).Truncate(time.Second))
	days, h, m, s := d/(24*time.Hour), d/time.Hour%24, d/time.Minute%60, d/time.Second%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d%s %02d:%02d:%02d", days, T(ctx, "ui.day_unit"), h, m, s)
	case h > 0:
		return fmt.Sprintf("%d:%02d:%02d", h, m, s)
	}
	return fmt.Sprintf("%d:%02d", m, s)
}

var (
	numbers = regexp.MustCompile(`[0-9]+`)
	quoted  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// ofLanguage begins the names of fields that a form has for each language.
	ofLanguage = regexp.MustCompile(`^l[0-9]+_`)
)

// FieldText describes in the viewer's language which rule a field breaks. The bounds of a rule are
// the numbers in its English message; quoted values come before the bounds.
func FieldText(ctx context.Context, f fault.Field) string {
	l := From(ctx).Locale
	if f.Key == "rule.required" {
		return requiredText(l, f.Name)
	}
	if !l.Has(f.Key) {
		return f.Message
	}
	var args []any
	rest := quoted.ReplaceAllStringFunc(f.Message, func(q string) string {
		s, _ := strconv.Unquote(q) // as %q wrote it
		if f.Key == "rule.provider_refused" {
			s = l.Said(s)
		}
		args = append(args, s)
		return ""
	})
	for _, n := range numbers.FindAllString(rest, -1) {
		var v int64
		_, _ = fmt.Sscan(n, &v) // digits by construction; a number beyond 63 bits shows as the largest
		args = append(args, v)
	}
	return l.T(f.Key, args...)
}

// requiredText says what to do with an empty field: the sentence of the last part of its name, without the
// number of its language. Names without a sentence of their own are asked for a value.
func requiredText(l *i18n.Locale, name string) string {
	name = name[strings.LastIndexByte(name, '.')+1:]
	if key := "required." + ofLanguage.ReplaceAllString(name, ""); l.Has(key) {
		return l.T(key)
	}
	return l.T("rule.required")
}

// Labelled writes a label and what is said of it, with the language's colon.
func Labelled(ctx context.Context, label, text string) string {
	return T(ctx, "ui.labelled", label, text)
}

// Bracketed writes a text with another one in the language's brackets.
func Bracketed(ctx context.Context, text, more string) string {
	return T(ctx, "ui.bracketed", text, more)
}

// RowErrorText says why a row of a list could not be processed.
func RowErrorText(ctx context.Context, e job.RowError) string {
	if len(e.Because) == 0 {
		return From(ctx).Locale.Said(e.Error)
	}
	all := make([]string, len(e.Because))
	for i, f := range e.Because {
		if all[i] = FieldText(ctx, f); f.Name != "" {
			all[i] = Labelled(ctx, f.Name, all[i])
		}
	}
	return strings.Join(all, "; ")
}

// ErrorOf returns the error of the named field, or "".
func ErrorOf(ctx context.Context, errs []fault.Field, name string) string {
	for _, f := range errs {
		if f.Name == name {
			return FieldText(ctx, f)
		}
	}
	return ""
}

// ErrorsOf returns the error of each field, by its name.
func ErrorsOf(ctx context.Context, errs []fault.Field) map[string]string {
	m := map[string]string{}
	for _, f := range errs {
		if _, told := m[f.Name]; !told {
			m[f.Name] = FieldText(ctx, f)
		}
	}
	return m
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// FaultText says in the viewer's language why something was refused.
func FaultText(ctx context.Context, err error) string {
	code, key := fault.CodeOf(err), fault.KeyOf(err)
	if l := From(ctx).Locale; key != "" && l.Has(key) {
		f, _ := errors.AsType[*fault.Fault](err)
		return FieldText(ctx, fault.Field{Key: key, Message: f.Text})
	} else if l.Has("fault." + code) {
		return l.T("fault." + code)
	}
	if code == "" {
		return T(ctx, "fault.bug")
	}
	return err.Error()
}

// Code writes an HTTP status as a number.
func Code(status int) string { return fmt.Sprint(status) }
