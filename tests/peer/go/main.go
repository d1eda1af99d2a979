// What an application with the Go client sees of schemas, delays and acknowledgements, or of a full
// disk: a line for each case on the standard output, and status 1 when one is not as promised.
// Arguments: the broker's service URL, and "full-disk" for the latter.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

const (
	wait     = 15 * time.Second
	quick    = 5 * time.Second
	order    = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	invoice  = `{"type":"record","name":"Invoice","fields":[{"name":"sum","type":"double"}]}`
	expected = "IncompatibleSchema"
)

// Order is a record.
type Order struct {
	ID int64 `avro:"id" json:"id"`
}

// Cases are played one after the other.
type Cases struct{ failures int }

func (c *Cases) play(name string, promised string, see func() (string, error)) {
	seen, err := see()
	if err != nil {
		seen = err.Error()
	}
	word := "ok    "
	if !strings.Contains(seen, promised) {
		word = "WRONG "
		c.failures++
	}
	fmt.Printf("%s%s: %s\n", word, name, strings.ReplaceAll(seen, "\n", " "))
}

func main() {
	quiet := logrus.New()
	quiet.SetLevel(logrus.PanicLevel)
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: os.Args[1], Logger: log.NewLoggerWithLogrus(quiet),
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	cases := &Cases{}
	if len(os.Args) > 2 && os.Args[2] == "full-disk" {
		fullDisk(cases, client)
	} else {
		schemas(cases, client)
		delays(cases, client)
		acknowledgements(cases, client)
	}
	client.Close()
	if cases.failures > 0 {
		fmt.Println(cases.failures, "not as promised")
		os.Exit(1)
	}
	fmt.Println("all as promised")
}

func schemas(cases *Cases, client pulsar.Client) {
	avro := pulsar.NewAvroSchema(order, nil)
	other := pulsar.NewAvroSchema(invoice, nil)
	record := func(topic string, schema pulsar.Schema) func() (string, error) {
		return func() (string, error) {
			message, err := passed(client, topic, schema, &Order{7})
			if err != nil {
				return "", err
			}
			var found Order
			err = message.GetSchemaValue(&found)
			return fmt.Sprint(found.ID), err
		}
	}
	cases.play("AVRO arrives", "7", record("go-AVRO", avro))
	cases.play("JSON arrives", "7", record("go-JSON", pulsar.NewJSONSchema(order, nil)))
	cases.play("STRING arrives", "text", func() (string, error) {
		message, err := passed(client, "go-STRING", pulsar.NewStringSchema(nil), "text")
		if err != nil {
			return "", err
		}
		return string(message.Payload()), nil
	})
	cases.play("a producer of another record", expected, func() (string, error) {
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: "go-AVRO", Schema: other})
		return closed(producer, err)
	})
	cases.play("a consumer of another record", expected, func() (string, error) {
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{
			Topic: "go-AVRO", SubscriptionName: "other", Schema: other,
		})
		if err == nil {
			consumer.Close()
		}
		return "", err
	})
	cases.play("a message with a schema of its own", "sent", func() (string, error) {
		return sendOne(client, "go-AVRO", avro)
	})
	cases.play("... and another one", "Incompatible schema", func() (string, error) {
		return sendOne(client, "go-AVRO", other)
	})
}

func delays(cases *Cases, client pulsar.Client) {
	cases.play("a delayed message goes at once, and the next one, too", "late next", func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{
			Topic: "go-delays", SubscriptionName: "s", Type: pulsar.Shared,
		})
		if err != nil {
			return "", err
		}
		defer consumer.Close()
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: "go-delays"})
		if err != nil {
			return "", err
		}
		defer producer.Close()
		begin := time.Now()
		_, first := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("late"), DeliverAfter: time.Hour})
		_, second := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("next")})
		if err := errors.Join(first, second); err != nil {
			return "", err
		}
		var texts []string
		for range 2 {
			message, err := consumer.Receive(ctx)
			if err != nil {
				return "", err
			}
			texts = append(texts, string(message.Payload()))
		}
		if took := time.Since(begin); took > quick {
			return "", fmt.Errorf("it took %s", took)
		}
		return strings.Join(texts, " "), nil
	})
}

// passed sends a value and receives it, with one schema.
func passed(client pulsar.Client, topic string, schema pulsar.Schema, value any) (pulsar.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: "s", Schema: schema,
	})
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: schema})
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	if _, err := producer.Send(ctx, &pulsar.ProducerMessage{Value: value}); err != nil {
		return nil, err
	}
	return consumer.Receive(ctx)
}

// sendOne sends a message whose schema its producer does not have.
func sendOne(client pulsar.Client, topic string, schema pulsar.Schema) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	if err != nil {
		return "", err
	}
	defer producer.Close()
	_, err = producer.Send(ctx, &pulsar.ProducerMessage{Value: &Order{8}, Schema: schema})
	return "sent", err
}

func closed(producer pulsar.Producer, err error) (string, error) {
	if err == nil {
		producer.Close()
	}
	return "", err
}
