//! Glosses of French requests, and which texts are taken for French at all.

use expect_test::{Expect, expect};
use pml_language::french::gloss;

#[track_caller]
fn check(requests: &[&str], expected: &Expect) {
    let glosses = requests.iter().map(|request| gloss(request).unwrap_or_else(|| "(not French)".to_owned()));
    expected.assert_eq(&glosses.map(|gloss| format!("{gloss}\n")).collect::<String>());
}

#[test]
fn everyday_requests_become_english_words() {
    check(
        &[
            "Quel temps fera-t-il demain à Lyon ?",
            "Peux-tu me trouver un vol pas cher de Paris à Lisbonne pour le week-end prochain ?",
            "Donne-moi une recette végétarienne avec des courgettes et du fromage de chèvre",
            "Ferme les volets du salon et éteins les lumières",
            "Quels sont les effets secondaires de l'aspirine ?",
            "Qui a gagné le match de foot hier soir ?",
            "J'aimerais réserver une chambre d'hôtel à Rome",
            "Rappelle-moi d'appeler maman dimanche à 14h",
            "Quel avocat peut m'aider pour un divorce ?",
            "Suis mon colis",
        ],
        &expect![[r#"
            what will the weather be tomorrow in Lyon?
            find a cheap flight from Paris to Lisbon for next weekend?
            give me a vegetarian recipe with zucchinis and goat cheese
            close shutters of living room and turn off lights
            what are side effects of aspirine?
            who has won soccer match last night?
            book hotel room in Rome
            remind call mom Sunday at 14h
            what lawyer avocado can help for a divorce?
            track follow my package parcel
        "#]],
    );
}

#[test]
fn technical_requests_become_english_words() {
    check(
        &[
            "Lis le fichier config.json et affiche son contenu",
            "Exécute une requête SQL sur la base de données clients",
            "Crée une branche git nommée feature/login et pousse-la sur le dépôt distant",
            "Affiche les journaux d'erreurs du déploiement Kubernetes",
            "Supprime tous les fichiers temporaires plus vieux que 30 jours",
            "Mets à jour les dépendances du projet puis lance les tests unitaires",
            "Redimensionne l'image en 800x600 et convertis-la en PNG",
            "liste les pull requests ouvertes du dépôt GitHub privé",
            "Calcule la moyenne et l'écart-type de ces valeurs",
        ],
        &expect![[r#"
            read file config.json and display its content
            run a SQL query on database customers
            create a named git branch feature/login and push on remote repository
            display error logs of Kubernetes deployment
            delete all temporary files older than 30 days
            update dependencies of project then run unit test
            resize image in 800x600 and convert to PNG
            list open pull requests of private GitHub repository deposit
            calculate average and standard deviation of these values
        "#]],
    );
}

#[test]
fn accents_are_optional_and_capitals_may_be_everywhere() {
    check(
        &[
            "genere un mot de passe aleatoire de 16 caracteres",
            "GÉNÈRE UN MOT DE PASSE ALÉATOIRE DE 16 CARACTÈRES",
            "De\u{301}tecte la langue de ce texte",
            "quelle est la meteo a Marseille aujourd’hui",
        ],
        &expect![[r#"
            generate a random password of 16 characters
            generate a random password of 16 characters
            detect language of this text
            what is weather in Marseille today
        "#]],
    );
}

#[test]
fn names_quotations_addresses_and_code_stay_as_they_are() {
    check(
        &[
            "Envoie un mail à Pierre Petit via contact@exemple.fr",
            "Traduis « le chat est noir » en anglais",
            "Ajoute \"acheter du pain\" à ma liste de courses",
            "Ouvre https://exemple.fr/une/page puis /home/moi/mes_fichiers/le_rapport.txt",
            "Appelle l'outil read_file avec l'option maxLines et le chemin 'le dossier/a.txt'",
            "Lis l'article de L'Équipe sur Le Mans",
        ],
        &expect![[r#"
            send email to Pierre Petit via contact@exemple.fr
            translate « le chat est noir » to English
            add "acheter du pain" to my shopping list
            open https://exemple.fr/une/page then /home/moi/mes_fichiers/le_rapport.txt
            call tool read_file with maxLines option and path 'le dossier/a.txt'
            read article of L'Équipe on Le Mans
        "#]],
    );
}

#[test]
fn sentences_and_list_points_stay_apart() {
    check(
        &[
            "Bonjour ! Lis mes mails. Ensuite :\n- réponds à Léa\n- supprime les spams (sauf les factures) ; merci",
        ],
        &expect![[r#"
            read my emails. then:
            - reply to Léa
            - delete spams (except invoices);
        "#]],
    );
}

#[test]
fn other_languages_and_identifiers_are_not_french() {
    for text in [
        "What will the weather be tomorrow in Lyon?",
        "Book a table at Le Petit Bistro in Paris",
        "Find hotels near Champs-Élysées",
        "Tour de France stage results",
        "What is the meaning of déjà vu?",
        "résumé builder",
        "restaurant menu",
        "chat message",
        "main page notes",
        "Busca vuelos baratos de Madrid a París para la próxima semana",
        "Envía un correo a María con el informe adjunto",
        "precio del bitcoin hoy",
        "Cerca un volo da Roma a Parigi per domani",
        "Che tempo fa a Milano?",
        "Traduci questo testo in francese",
        "Wie wird das Wetter morgen in München?",
        "Sende eine E-Mail an Peter",
        "Procura voos baratos de Lisboa para Paris",
        "Crie uma lista de tarefas",
        "Zoek een vlucht van Amsterdam naar Parijs",
        "Caută un zbor ieftin din București",
        "read_file",
        "createPullRequest",
        "fs:read",
        "GET /api/v1/users?id=3",
        "SELECT * FROM clients",
        "Paris",
        "le",
        "",
        " \n ",
        "🙂🙂",
        "12345",
        "搜索关键词",
        "« le chat est noir »",
        "Bonjour, merci !",
    ] {
        assert_eq!(gloss(text), None, "{text}");
    }
}

#[test]
fn short_and_mixed_requests_are_french() {
    check(
        &[
            "météo",
            "météo demain",
            "traduction anglais",
            "recherche de vols",
            "utilise create_issue pour ouvrir un ticket dans le repo my-app avec le titre fix login bug",
            "merge la branche feature dans main et push",
        ],
        &expect![[r#"
            weather
            weather tomorrow
            English translation
            flights search
            use create_issue to open a ticket in repo my-app with fix login title bug
            merge branch feature into main and push
        "#]],
    );
}

#[test]
fn unknown_words_are_written_as_english_would() {
    check(
        &["Trouve une étude bibliométrique sur la cryogénie et le pointillisme"],
        &expect![[r#"
        find a bibliometric study on cryogenie and pointillism
    "#]],
    );
}

#[test]
fn long_texts_are_read_whole() {
    let sentence = "Lis le fichier et envoie le résumé à l'équipe. ";
    let glossed = gloss(&sentence.repeat(2_200)).expect("French however often it is said");
    assert_eq!(glossed.matches("read file and send summary to team.").count(), 2_200);
    for one in ["a", "'", "\"", "«", "l'", "é", "-", "de la ", "carte ", "carte de "] {
        assert_eq!(gloss(&one.repeat(100_000 / one.len())).is_some(), one.starts_with("carte"), "{one}");
    }
}
