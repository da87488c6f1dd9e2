package pipeline

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"dropbell/domain/field"
)

// bodyOptions are the options of a tag json.
var bodyOptions = []string{"omitempty", "omitzero"}

// bodyName returns the name of a field of a body; "" = f is no field of a body.
func bodyName(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && f.IsExported() && name != "-" {
		return name
	}
	return ""
}

// A Conversion writes a value of the domain as a value of a body, and reads it again.
type Conversion struct {
	domain, body reflect.Type
	write        func(from, to reflect.Value)
	read         func(name string, from, to reflect.Value) error
}

// Converts returns the conversion between D and B.
func Converts[D, B any](write func(D) B, read func(B) D) Conversion {
	return Conversion{reflect.TypeFor[D](), reflect.TypeFor[B](),
		func(from, to reflect.Value) { to.Set(reflect.ValueOf(write(from.Interface().(D)))) },
		func(_ string, from, to reflect.Value) error {
			to.Set(reflect.ValueOf(read(from.Interface().(B))))
			return nil
		}}
}

// usual are the conversions of every [Copy].
var usual = []Conversion{
	Converts(time.Time.UTC, time.Time.UTC),
	Converts(UTC, UTC),
	{reflect.TypeFor[int64](), reflect.TypeFor[string](), func(from, to reflect.Value) { to.SetString(Decimal(from.Int())) },
		func(name string, from, to reflect.Value) error {
			id, err := ParseID("body."+name, from.String())
			to.SetInt(id)
			return err
		}},
}

// conversion returns how f of the domain becomes of of a body: by one of the list, unchanged, or
// as a value of the same kind.
func conversion(list []Conversion, f, of field.Field) (Conversion, bool) {
	for _, c := range list {
		if c.domain == f.Type && c.body == of.Type {
			return c, true
		}
	}
	c := Conversion{write: func(from, to reflect.Value) { to.Set(from.Convert(to.Type())) },
		read: func(_ string, from, to reflect.Value) error { to.Set(from.Convert(to.Type())); return nil }}
	return c, f.Type.Kind() == of.Type.Kind() && f.Type.ConvertibleTo(of.Type)
}

// A Copy copies the fields of a D of the domain to the fields of a body B with the same names, and
// back.
type Copy[D, B any] struct {
	pairs []pair
}

type pair struct {
	domain, body field.Field
	Conversion
}

// Copies returns the copy between D and B. It panics if a field of D has no partner in B, or one
// of another type: a field that was forgotten in a body is a mistake of the program. B may have
// more fields.
func Copies[D, B any](table field.Table[D], more ...Conversion) (c Copy[D, B]) {
	body := field.Tagged[B]("json", bodyOptions...)
	for _, f := range table {
		of, ok := body.Named(f.Name)
		if !ok {
			panic(fmt.Sprintf("%s has no field %s", reflect.TypeFor[B](), f.Name))
		}
		how, ok := conversion(append(more, usual...), f, of)
		if !ok {
			panic(fmt.Sprintf("%s of %s is a %s, which is no %s", f.Name, reflect.TypeFor[B](), of.Type, f.Type))
		}
		c.pairs = append(c.pairs, pair{f, of, how})
	}
	return c
}

// To copies d to the body.
func (c Copy[D, B]) To(b *B, d D) {
	for _, p := range c.pairs {
		p.write(p.domain.Of(&d), p.body.Of(b))
	}
}

// From copies the body to d. Its error is a fault.Fields that names every field that cannot be
// read.
func (c Copy[D, B]) From(d *D, b B) error {
	var broken []error
	for _, p := range c.pairs {
		broken = append(broken, p.read(p.domain.Name, p.body.Of(&b), p.domain.Of(d)))
	}
	return Merge(broken...)
}
