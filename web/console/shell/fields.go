package shell

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/field"
	"dropbell/domain/money"
)

// A Text writes the values of a type as the text of a form's field, and reads them again.
type Text struct {
	of    reflect.Type
	write func(reflect.Value) string
	read  func(typed string, to reflect.Value)
}

// TextOf returns the text of the type D. A text that cannot be read gives a value that breaks a
// rule.
func TextOf[D any](write func(D) string, read func(string) D) Text {
	return Text{reflect.TypeFor[D](), func(v reflect.Value) string { return write(v.Interface().(D)) },
		func(typed string, to reflect.Value) { to.Set(reflect.ValueOf(read(typed))) }}
}

// A Form has the fields of a T as a page shows them: texts by name. An instant has two fields: the
// local time, and name_fold for a local time that occurs twice.
type Form[T any] struct {
	Fields field.Table[T]
	// Texts are the types that are not texts, amounts, whole numbers or instants.
	Texts []Text
}

func (f Form[T]) text(of reflect.Type) (Text, bool) {
	i := slices.IndexFunc(f.Texts, func(t Text) bool { return t.of == of })
	if i < 0 {
		return Text{}, false
	}
	return f.Texts[i], true
}

// Names returns the names of the form's fields.
func (f Form[T]) Names() (list []string) {
	for _, one := range f.Fields {
		list = append(list, one.Name)
		if one.Type == reflect.TypeFor[time.Time]() || one.Type == reflect.TypeFor[*time.Time]() {
			list = append(list, one.Name+"_fold")
		}
	}
	return list
}

// Typed returns the typed values unchanged, except that lines end with LF: browsers send CR LF.
func (f Form[T]) Typed(r *http.Request) map[string]string {
	v := map[string]string{}
	for _, name := range f.Names() {
		v[name] = r.PostFormValue(name)
	}
	for _, one := range f.Fields.With(field.Lines) {
		v[one.Name] = strings.ReplaceAll(v[one.Name], "\r\n", "\n")
	}
	return v
}

// Values returns a stored value as it would be typed. A number or amount of 0 is an empty text.
func (f Form[T]) Values(stored T, currency string, zone *time.Location) map[string]string {
	v := map[string]string{}
	for _, one := range f.Fields {
		value := one.Of(&stored)
		if t, ok := f.text(one.Type); ok {
			v[one.Name] = t.write(value)
			continue
		}
		switch x := value.Interface().(type) {
		case money.Amount:
			v[one.Name] = typedAmount(x, currency)
		case time.Time:
			v[one.Name], v[one.Name+"_fold"] = TypedTime(x, zone)
		case *time.Time:
			v[one.Name], v[one.Name+"_fold"] = "", ""
			if x != nil {
				v[one.Name], v[one.Name+"_fold"] = TypedTime(*x, zone)
			}
		default:
			if value.CanInt() && value.Int() != 0 {
				v[one.Name] = strconv.FormatInt(value.Int(), 10)
			} else if !value.CanInt() {
				v[one.Name] = value.String()
			}
		}
	}
	return v
}

func typedAmount(a money.Amount, currency string) string {
	if a == 0 {
		return ""
	}
	text := a.Decimal(currency)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Read reads the typed values of the fields that count; other fields keep their values. Amounts
// are amounts of the currency. Values that cannot be read are added to rd.Broken.
func (f Form[T]) Read(rd *Reading, to *T, currency string, counts func(name string) bool) {
	for _, one := range f.Fields {
		if !counts(one.Name) {
			continue
		}
		value := one.Of(to)
		if t, ok := f.text(one.Type); ok {
			t.read(rd.Values[one.Name], value)
			continue
		}
		switch value.Interface().(type) {
		case money.Amount:
			value.SetInt(int64(rd.Amount(one.Name, currency)))
		case time.Time:
			value.Set(reflect.ValueOf(rd.When(one.Name)))
		case *time.Time:
			if at := rd.When(one.Name); !at.IsZero() {
				value.Set(reflect.ValueOf(&at))
			}
		default:
			switch {
			case value.CanInt():
				value.SetInt(rd.Number(one.Name))
			case one.Has(field.Lines):
				value.SetString(rd.Values[one.Name])
			default:
				value.SetString(strings.TrimSpace(rd.Values[one.Name]))
			}
		}
	}
}

// Cells returns the values of v by name as the cells of a file.
func (f Form[T]) Cells(v T) map[string]any {
	cells := f.Fields.Values(v)
	for _, one := range f.Fields {
		value := one.Of(&v)
		if t, ok := f.text(one.Type); ok {
			cells[one.Name] = t.write(value)
		} else if value.CanInt() {
			cells[one.Name] = value.Int()
		} else if value.Kind() == reflect.String {
			cells[one.Name] = value.String()
		}
	}
	return cells
}
